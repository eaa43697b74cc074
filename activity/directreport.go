package activity

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

const (
	// directPatience is how long the owner of a workflow may take to store what it is handed before
	// that goes the other way.
	directPatience = 2 * time.Second
	// directGrace is how long its answer may still come after a reconnect.
	directGrace = 100 * time.Millisecond
)

// reportDirectly gives an outcome, or a question, straight to the owner of its workflow and tells
// whether it is stored, which to a question means yes. Nothing is lost if it is not, or if that is
// unknown: the task is in hand, the inbox takes the report, and one that was stored twice counts
// once.
//
// The error is that of encoding it.
func (s *term) reportDirectly(
	ctx context.Context, d *delivery, r *schemas.Report,
) (stored bool, err error) {
	p, wid, list, err := subject.ParseBeat(d.task.Beat)
	if err != nil {
		return false, nil
	}
	done, _, err := s.conn.Bulk(ctx, len(r.Result)+len(r.Details), 0)
	if err != nil {
		return false, nil
	}
	var answer chan error // nil: too large
	err = schemas.MarshalTo(r, func(body []byte) error {
		if len(body) <= min(schemas.PayloadThreshold, int(s.conn.MaxPayload())/2) {
			answer = make(chan error, 1)
			s.owners.Send(s.ns.Outcome(p, wid, list), nil, body, func(k natsconn.Ack) {
				done(k.Err)
				answer <- k.Err
			})
		}
		return nil
	})
	if err != nil || answer == nil {
		done(context.Canceled) // nothing was sent
		return false, err
	}
	select {
	case err := <-answer:
		if err != nil {
			d.log().WithField("err", err).
				Debug("a report was not taken by the owner of its workflow; the inbox takes it")
		}
		return err == nil, nil
	case <-ctx.Done():
		return false, nil
	}
}

// outcomeTaken reads the answer of an owner. The error says why it does not have the report.
func outcomeTaken(body []byte) error {
	var a schemas.OutcomeAnswer
	switch err := schemas.Unmarshal(body, &a); {
	case err != nil:
		return err
	case a.Error != nil:
		return a.Error
	case a.Sequence == 0:
		return errors.New("the answer names no record: somebody else listens on the subject")
	}
	return nil
}
