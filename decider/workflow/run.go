package workflow

import (
	"errors"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// run is a run whose code is in memory.
type run struct {
	m    *machine.Machine
	info Info
	log  *logrus.Entry
}

// newRun returns a run of a function without events.
func newRun[In, Out any](
	t *decider.Task, w *contract.WorkflowOf[In, Out], fn func(Context, In) (Out, error),
	log *logrus.Entry,
) *run {
	e := t.Execution()
	r := &run{info: Info{WorkflowID: e.WorkflowID, Run: e.Run, Type: t.Type()}}
	r.m = machine.New(
		func(m *machine.Machine, started *schemas.WorkflowStarted) func() schemas.Decision {
			r.info.FirstRun = started.FirstExecutionRun
			if r.info.FirstRun == "" {
				r.info.FirstRun = e.Run
			}
			r.info.Started = m.Now()
			var in In
			var out Out
			input, err := unpack(m, started.Input)
			if err == nil {
				in, err = w.DecodeInput(input)
			}
			if err == nil {
				out, err = fn(Context{run: r, scope: m.Root()}, in)
			}
			return func() schemas.Decision {
				r.warnOfDropped()
				return closed(r, w, out, err)
			}
		}, e)
	r.log = log.WithFields(logrus.Fields{"workflow": e.WorkflowID, "run": e.Run})
	return r
}

// close ends the coroutines of a run that is over, or leaves the memory. Their deferred functions
// run, and can ask for nothing.
func (r *run) close() {
	if err := r.m.Close(); err != nil {
		r.log.WithError(err).Error("a run does not leave the memory")
	}
}

// warnOfDropped tells of calls that the function has begun and not waited for.
func (r *run) warnOfDropped() {
	for _, name := range r.m.Dropped() {
		if r.m.Live() {
			r.log.WithField("call", name).Warn("the workflow has returned in the turn in which it has " +
				"asked for a call, which never begins: wait for its future")
		}
	}
}

// closed is the decision that ends a run whose function has returned.
func closed[In, Out any](
	r *run, w *contract.WorkflowOf[In, Out], out Out, err error,
) schemas.Decision {
	if next, ok := errors.AsType[*continueAsNew](err); ok {
		return decider.ContinueAsNew(pack(r.m, next.input))
	}
	if err == nil {
		result, err := w.EncodeResult(out)
		if err != nil {
			panic(err.Error())
		}
		return decider.Complete(result)
	}
	if fault, ok := contract.AsFault(err); ok {
		return decider.Fail(fault.Reason, fault.Details)
	}
	if errors.Is(err, ErrCanceled) && r.m.Root().Err() != nil {
		return decider.Cancel(err.Error()) // what went wrong in putting things right is in it
	}
	return decider.Fail(schemas.ReasonFailed, err.Error())
}

// continueAsNew is what a function returns that goes on in a new run.
type continueAsNew struct{ input schemas.Payload }

// Error implements error.
func (*continueAsNew) Error() string { return "the workflow continues as new" }

// ContinueAsNewSuggested tells whether the run is to continue as new when that fits: its history
// has become long, its [schemas.ContinuationPolicy] says so, or the deployment is recycled. Once
// true it stays so. A workflow without end looks in the condition for which it waits:
//
//	err := workflow.WaitFor(ctx, func() bool {
//		return orders.Len() > 0 || workflow.ContinueAsNewSuggested(ctx)
//	})
func ContinueAsNewSuggested(ctx Context) bool { return ctx.run.m.Suggested() }

// ContinueAsNew ends the run and begins a new one of the same workflow id, with an empty history:
//
//	return workflow.ContinueAsNew(ctx, Process, next)
//
// No signal is lost in between; those that stand unreceived in channels go to the new run.
func ContinueAsNew[In, Out any](_ Context, w *contract.WorkflowOf[In, Out], next In) (Out, error) {
	var none Out
	input, err := w.EncodeInput(next)
	if err != nil {
		panic(err.Error())
	}
	return none, &continueAsNew{input: input}
}
