package workflow

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// Call runs an activity, or a workflow as a child, and waits for its end.
//
// An error is a [*CallError]; if the activity has returned a fault, [errors.Is] finds that. An
// activity that fails otherwise is tried again, by the policy of its contract.
func Call[In, Out any](
	ctx Context, c contract.Callable[In, Out], in In, opts ...contract.Option,
) (Out, error) {
	return Start(ctx, c, in, opts...).Get(ctx)
}

// Start asks for an activity, or for a workflow as a child, and does not wait. A child that is open
// when the run ends is canceled, unless [contract.Abandon] is given.
func Start[In, Out any](
	ctx Context, c contract.Callable[In, Out], in In, opts ...contract.Option,
) *Future[Out] {
	if w, ok := c.(*contract.WorkflowOf[In, Out]); ok {
		return called(ctx, c, startChild(ctx, w, in, opts, false))
	}
	a, _ := c.(*contract.ActivityOf[In, Out]) // there are no others
	return called(ctx, c, schedule(ctx, a, in, opts))
}

// Begin starts a workflow as a child and waits until it has begun: from then on it can be signaled.
// The error is a [*CallError], such as one that is Refused with the reason
// [schemas.CauseWorkflowRunning].
func Begin[In, Out any](
	ctx Context, w *contract.WorkflowOf[In, Out], in In, opts ...contract.Option,
) (*Future[Out], error) {
	f := startChild(ctx, w, in, opts, true)
	begun, err := ctx.run.m.WaitBegun(f)
	if err == nil && !begun {
		err = ended(ctx, w.Name(), f)
	}
	if err != nil {
		return nil, err
	}
	return called(ctx, w, f), nil
}

// called is the future of a call.
func called[In, Out any](
	ctx Context, c contract.Callable[In, Out], f *machine.Future,
) *Future[Out] {
	return &Future[Out]{f: f, result: func() (Out, error) {
		var out Out
		if err := ended(ctx, c.Name(), f); err != nil {
			return out, err
		}
		out, err := c.DecodeResult(f.Outcome().Result)
		if err != nil {
			panic(fmt.Sprintf("the result of %s: %v", f.Name, err))
		}
		return out, nil
	}}
}

func schedule[In, Out any](
	ctx Context, c *contract.ActivityOf[In, Out], in In, opts []contract.Option,
) *machine.Future {
	m := ctx.run.m
	all := slices.Concat(ctx.options, opts)
	a, err := c.Schedule("", in, all...)
	if err != nil {
		panic(err.Error())
	}
	if d := m.Started().ActivityDefaults; a.List == "" && (d == nil || d.List == "") {
		a.List = contract.DefaultList
	}
	f := m.Schedule(ctx.scope, a)
	if contract.Abandons(all...) {
		f.Abandon()
	}
	return f
}

func startChild[In, Out any](
	ctx Context, w *contract.WorkflowOf[In, Out], in In, opts []contract.Option, tell bool,
) *machine.Future {
	a, err := w.StartChild(in, opts...)
	if err != nil {
		panic(err.Error())
	}
	a.Tell = tell
	f := ctx.run.m.StartChild(ctx.scope, a)
	if contract.Abandons(opts...) {
		f.Abandon()
	}
	return f
}

// CallError says that what was called did not succeed.
type CallError struct {
	Name    string // of the activity, workflow or step
	ID      string // of this call, such as charge#2
	Outcome CallOutcome
	// Reason says why: of a failure what its worker has given, of a timeout its type, of a refusal
	// the cause. Details come with it.
	Reason  string
	Details schemas.Payload

	canceled error // why, if it was canceled
}

// CallOutcome is how a call ended that did not succeed.
type CallOutcome = machine.Kind

// The outcomes of calls.
const (
	Failed     = machine.Failed
	TimedOut   = machine.TimedOut
	Canceled   = machine.Canceled
	Refused    = machine.Refused
	Terminated = machine.Terminated
)

// Error implements error.
func (e *CallError) Error() string {
	text := e.ID + " " + e.Outcome.String()
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Unwrap returns the fault of a failure. Of what was canceled it returns why: ErrTimeout if the
// time of its scope was over, else ErrCanceled.
func (e *CallError) Unwrap() error {
	switch e.Outcome {
	case Failed:
		return &contract.FaultError{Reason: e.Reason, Details: e.Details}
	case Canceled:
		return e.canceled
	}
	return nil
}

// ended returns the error of what did not succeed.
func ended(ctx Context, name string, f *machine.Future) error {
	if _, err := f.Value(); err != nil {
		return err // it was asked for while the coroutine panicked
	}
	o := f.Outcome()
	if o.Kind == machine.Succeeded {
		return nil
	}
	return &CallError{
		Name: name, ID: f.Name, Outcome: o.Kind, Reason: o.Reason, Details: o.Details,
		canceled: cmp.Or(ctx.scope.Err(), ErrCanceled),
	}
}
