package drover

import (
	"context"

	"github.com/droverhq/drover/contract"
)

// TypedRun is a run of a workflow that has a contract.
type TypedRun[Out any] struct {
	*Run
	decode func(*Outcome) (Out, error)
}

// Start starts a workflow by its contract. Options and errors are those of [Client.Start].
func Start[In, Out any](
	ctx context.Context, c *Client, w *contract.WorkflowOf[In, Out], in In, o *StartOptions,
) (*TypedRun[Out], error) {
	input, err := w.EncodeInput(in)
	if err != nil {
		return nil, newError(query{verb: "start"}, err)
	}
	r, err := c.Start(ctx, w.Name(), input, o)
	if err != nil {
		return nil, err
	}
	return Typed(r, w), nil
}

// Typed gives a run the types of its contract: of one that was found by its id, for example.
func Typed[In, Out any](r *Run, w *contract.WorkflowOf[In, Out]) *TypedRun[Out] {
	return &TypedRun[Out]{Run: r, decode: func(o *Outcome) (Out, error) {
		return w.DecodeResult(o.Result)
	}}
}

// Result waits until the run has ended and returns its result. Errors are those of [Run.Result]; if
// the workflow has returned a fault, [errors.Is] finds it.
func (r *TypedRun[Out]) Result(ctx context.Context) (Out, error) {
	var none Out
	o, err := r.Wait(ctx)
	if err != nil {
		return none, err
	}
	if err := o.Err(); err != nil {
		return none, err
	}
	out, err := r.decode(o)
	if err != nil {
		return none, newError(query{verb: "result", id: o.ID, run: o.Run}, err)
	}
	return out, nil
}

// Signal hands a signal to a run by the signal's contract. Errors are those of [Run.Signal]. The run
// is a [Run] or a [TypedRun].
func Signal[T any](
	ctx context.Context, run interface {
		Signal(ctx context.Context, name string, input any) error
	}, s *contract.SignalOf[T], v T,
) error {
	p, err := s.Encode(v)
	if err != nil {
		return newError(query{verb: "signal"}, err)
	}
	return run.Signal(ctx, s.Name(), p)
}
