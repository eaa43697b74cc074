package workflow

import (
	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/schemas"
)

// Send sends a signal to another workflow. It returns once the open run of that has it in its
// history, or the error: a [*CallError] that is Refused, with the reason
// [schemas.CauseUnknownExecution] if no run is open. A signal that is on its way is not taken back
// by a cancellation.
func Send[T any](ctx Context, workflowID string, s *contract.SignalOf[T], v T) error {
	p, err := s.Encode(v)
	if err != nil {
		panic(err.Error())
	}
	f := ctx.run.m.Signal(ctx.scope, &schemas.SignalExternal{
		WorkflowID: workflowID, SignalName: s.Name(), Input: p,
	})
	if err := ctx.run.m.Wait(f.Name, f); err != nil {
		return err
	}
	return ended(ctx, s.Name(), f)
}

// RequestCancel asks another workflow to end, as [Send] sends a signal: it returns once the other
// one has the request. A child is canceled by the Cancel of its future.
func RequestCancel(ctx Context, workflowID string) error {
	f := ctx.run.m.RequestCancel(ctx.scope, &schemas.CancelExternal{WorkflowID: workflowID})
	if err := ctx.run.m.Wait(f.Name, f); err != nil {
		return err
	}
	return ended(ctx, workflowID, f)
}
