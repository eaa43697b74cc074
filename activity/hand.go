package activity

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/schemas"
)

// handPatience is how long the owner of a workflow may take to store an outcome before it goes the other way.
const handPatience = 2 * time.Second

var handed = post.Header{schemas.ReportHeader: {"1"}}

// hand gives an outcome straight to the owner of its workflow and tells whether it is stored. Nothing is lost if it is not, or
// if that is unknown: the task is in hand, the inbox takes the outcome, and one that was stored twice counts once.
func (s *spell) hand(ctx context.Context, a *attempt, body []byte) (stored bool) {
	if a.task.Beat == "" || len(body) > schemas.PayloadThreshold {
		return false
	}
	answer := make(chan error, 1)
	s.owners.Send(a.task.Beat, handed, body, func(k post.Ack) { answer <- k.Err })
	select {
	case err := <-answer:
		if err != nil {
			a.log().WithField("err", err).Debug("an outcome was not taken by the owner of its workflow; the inbox takes it")
		}
		return err == nil
	case <-ctx.Done():
		return false
	}
}
