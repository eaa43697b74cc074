package drover

import (
	"context"
	"errors"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Cancel asks the run's decider to end it: a WorkflowCancelRequested event with the reason wakes
// the decider, which may clean up first, or go on. A second request while one stands changes
// nothing.
//
// Errors: [ErrNotFound], [ErrClosed], [ErrUnavailable], [ErrTimeout].
func (r *Run) Cancel(ctx context.Context, reason string) error {
	return r.operate(ctx, "cancel", schemas.ExecutionRequest{Reason: reason})
}

// TerminateOptions of [Run.Terminate].
type TerminateOptions struct {
	// Reason is the short word for the history. Defaults to none.
	Reason string
	// Details go into the history too; they are encoded as in [Client.Start]. Defaults to none.
	Details any
	// ChildPolicy says what becomes of the children that are open. Defaults to what the run was
	// started with.
	ChildPolicy schemas.ChildPolicy
}

// Terminate ends the run at once, without asking its decider; activities that run are told to stop.
// nil options mean all defaults.
//
// Errors: [ErrNotFound], [ErrClosed], [ErrInvalid], [ErrUnavailable], [ErrTimeout].
func (r *Run) Terminate(ctx context.Context, o *TerminateOptions) error {
	var opts TerminateOptions
	if o != nil {
		opts = *o
	}
	details, err := encode("details", opts.Details)
	if err != nil {
		return newError(query{verb: "terminate", id: r.ID, run: r.RunID}, err)
	}
	return r.operate(ctx, "terminate", schemas.ExecutionRequest{
		Reason: opts.Reason, Details: details, ChildPolicy: opts.ChildPolicy,
	})
}

// Delete purges the run now, which must have closed, whatever its retention says, and with it the
// runs of its chain before it and the parts of its flow. It does not go earlier than a run without
// retention does: about two minutes after its end, when all that it had to do is done. The reason
// goes into the log of operations. The master of the namespace answers, so a server with the role
// ops must run.
//
// Errors: [ErrNotFound], also if it is gone; [ErrConflict] if the run is open, or may not go yet,
// with the reason; [ErrUnavailable], [ErrTimeout].
func (r *Run) Delete(ctx context.Context, reason string) (*ops.DeleteResponse, error) {
	q, err := r.query("delete", 0)
	if err != nil {
		return nil, err
	}
	if q.run, err = r.current(ctx, q); err != nil {
		return nil, err
	}
	req := &ops.DeleteRequest{
		V: schemas.Version, WorkflowID: r.ID, Run: q.run, Reason: reason, Identity: r.client.name,
	}
	return call(ctx, r.client, q, req,
		func(a *ops.DeleteResponse) *schemas.Error { return a.Error })
}

// current is the run that a request is for, which is named before it is made: its repeat must not
// hit another run of the workflow id (P-5).
func (r *Run) current(ctx context.Context, q query) (string, error) {
	if q.run != "" {
		return q.run, nil
	}
	now, err := r.Describe(ctx)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			e.Op = q.verb // the question is a step of it
		}
		return "", err
	}
	return now.Execution.Run, nil
}
