package activity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// uploadPatience is how long a large outcome is tried to be stored before it goes along in the
	// report, if it fits.
	uploadPatience = 10 * time.Second
	uploadRetry    = 2 * time.Second
)

// input gives the task's input; one that is too large for a task is fetched, for as long as the
// attempt may last.
func (a *attempt) input(ctx context.Context) (schemas.Payload, error) {
	if _, ok := a.task.Input.Ref(); !ok {
		return a.task.Input, nil
	}
	in, err := payloads.NewClient(a.term.conn, a.term.ns, 0).Resolve(ctx, a.task.Input)
	if err != nil && ctx.Err() == nil { // else the cause of its end counts
		err = &Failure{Reason: ReasonPayload, Details: schemas.Text(bound(err.Error(), maxDetails))}
	}
	return in, err
}

// spill stores what is too large of an outcome, and puts references in its place. What cannot be
// stored stays, if the report can carry it: the service stores it then. While nobody answers, what
// does not fit waits: a result is not given up because a broker is away.
func (s *term) spill(ctx context.Context, a *attempt, r *schemas.Report) error {
	if max(len(r.Result), len(r.Details)) <= payloads.InlineLimit(s.conn.MaxPayload()) {
		return nil
	}
	ctx, cancel := a.wanted(ctx)
	defer cancel()
	client := payloads.NewClient(s.conn, s.ns, uploadPatience)
	for _, p := range []*schemas.Payload{&r.Result, &r.Details} {
		for {
			small, err := client.Spill(ctx, *p)
			if err == nil {
				*p = small
				break
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			a.log().WithField("err", err).Warn("a large outcome could not be stored")
			if len(*p) <= int(s.conn.MaxPayload())-2*headerBudget || !payloads.Transient(err) {
				break
			}
			if sleep.For(ctx, uploadRetry) != nil {
				return errors.Join(context.Cause(ctx), fmt.Errorf("outcome: %w", err))
			}
		}
	}
	return nil
}
