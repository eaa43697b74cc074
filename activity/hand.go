package activity

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// handPatience is how long the owner of a workflow may take to store an outcome before it goes the other way.
const handPatience = 2 * time.Second

// hand gives an outcome straight to the owner of its workflow and tells whether it is stored. Nothing is lost if it is not, or
// if that is unknown: the task is in hand, the inbox takes the outcome, and one that was stored twice counts once.
func (s *spell) hand(ctx context.Context, a *attempt, body []byte) (stored bool) {
	if a.task.Beat == "" || len(body) > schemas.PayloadThreshold {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, handPatience)
	defer cancel()
	m, err := s.conn.Request(ctx, a.task.Beat, post.Header{schemas.ReportHeader: {"1"}}, body)
	if err != nil {
		a.log().WithField("err", err).Debug("an outcome was not taken by the owner of its workflow; the inbox takes it")
		return false
	}
	var answer schemas.ReportAnswer
	return schemas.Unmarshal(m.Data, &answer) == nil && answer.Stored
}
