package drover

import (
	"context"

	"github.com/droverhq/drover/schemas"
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
