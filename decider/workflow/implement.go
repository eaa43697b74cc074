package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/contract"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/internal/warm"
	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/internal/logs"
	"github.com/droverhq/drover/schemas"
)

// Registry takes deciders: a [decider.Worker] does.
type Registry interface {
	Register(workflowType string, d decider.Decider)
}

// Options of an implementation. The zero value is usable.
type Options struct {
	// Kept is how many runs are kept in memory between two decisions. Defaults to 1000; negative is
	// none.
	Kept int
	// Logger is what [Log] writes to. Defaults to that of the worker.
	Logger logrus.FieldLogger
}

// Implement makes a function the workflow of a contract. It panics without a function.
func Implement[In, Out any](
	r Registry, w *contract.WorkflowOf[In, Out], fn func(Context, In) (Out, error), o *Options,
) {
	if fn == nil {
		panic(fmt.Sprintf("workflow %q: Implement without a function", w.Name()))
	}
	if o == nil {
		o = &Options{}
	}
	logger := o.Logger
	if w, ok := r.(interface{ Logger() logrus.FieldLogger }); ok && logger == nil {
		logger = w.Logger()
	}
	log := logs.Or(logger).WithField("workflowType", w.Name())
	r.Register(w.Name(), &code{
		dog: coroutine.NewWatchdog(stuckAfter, lookEvery, func(e *coroutine.Error) {
			log.WithField("stack", e.Stack.String()).Warn(e.Error())
		}),
		// the end of coroutines may wait for a deferred function, that of steps for their functions
		kept:  warm.New(cmp.Or(o.Kept, 1000), func(r *run) { go r.close() }),
		keeps: o.Kept >= 0,
		begin: func(t *decider.Task) *run {
			return newRun(t, w, fn, log)
		},
	})
}

// code is the decider of a workflow.
type code struct {
	begin  func(*decider.Task) *run
	kept   *warm.Runs[*run]
	keeps  bool // any
	dog    *coroutine.Watchdog
	evicts func(*decider.Task) bool // for tests: the run leaves the memory after the decision
}

const (
	// stuckAfter is how long a coroutine may run before it is looked at: one that waits for something
	// outside the workflow would wait for ever. lookEvery bounds how often that is done, since all
	// goroutines of the process stand still meanwhile.
	stuckAfter = time.Second
	lookEvery  = 10 * time.Second
)

// Decide implements [decider.Decider].
func (c *code) Decide(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
	r, ok := c.kept.Take(t)
	events, l := window(t), live(ctx, t, ok || t.PreviousStartedID() == 0 && c.keeps)
	if !ok {
		r, events = c.begin(t), t.History(ctx)
	}
	unguard := c.dog.Guard(r.m.Scheduler())
	defer unguard()
	decisions, err := r.decide(ctx, t, events, l)
	if err != nil {
		r.close()
		return nil, err
	}
	if n := len(decisions); n > 0 && closes(decisions[n-1]) {
		t.SetAllOrNothing(true) // the code may look for what has come in since
		r.close()
		return decisions, nil
	}
	if c.evicts != nil && c.evicts(t) && !r.m.Busy() || !c.kept.Keep(t, r) {
		r.close()
	}
	return decisions, nil
}

// Needs implements [decider.Needs].
func (c *code) Needs() []schemas.Feature { return schemas.Features() }

// Check implements [decider.Checker].
func (c *code) Check(ctx context.Context, t *decider.Task) error {
	return c.check(ctx, t, c.begin(t))
}

// CheckInputs is Check that compares inputs and results, too, for code that was not changed since.
func (c *code) CheckInputs(ctx context.Context, t *decider.Task) error {
	r := c.begin(t)
	r.m.CompareInputs()
	return c.check(ctx, t, r)
}

func (c *code) check(ctx context.Context, t *decider.Task, r *run) error {
	defer r.close()
	unguard := c.dog.Guard(r.m.Scheduler())
	defer unguard()
	at, err := r.add(ctx, t, t.History(ctx))
	if err == nil {
		err = r.m.Flush()
	}
	if _, differs := errors.AsType[*machine.MismatchError](err); err != nil && !differs {
		return fmt.Errorf("the code fails at event %d: %w", at, err)
	}
	return explain(err)
}

// EvictIf makes runs leave the memory after decisions on tasks for which f says so: tests find by
// that what code does only while it stays in memory. A run whose steps run stays. It is called
// before the worker runs.
func (c *code) EvictIf(f func(*decider.Task) bool) { c.evicts = f }

// Stop implements [decider.Stopper]: the runs that are kept end their coroutines.
func (c *code) Stop() {
	var all sync.WaitGroup
	for _, r := range c.kept.Clear() {
		all.Go(r.close) // each may wait for its steps
	}
	all.Wait()
}

// decide adds events and makes the decision of a task.
func (r *run) decide(
	ctx context.Context, t *decider.Task, events iter.Seq2[schemas.Event, error], l machine.Live,
) ([]schemas.Decision, error) {
	if _, err := r.add(ctx, t, events); err != nil {
		return nil, explain(err)
	}
	all, again, err := r.m.Decide(l)
	t.SetAgain(again)
	return all, explain(err)
}

// add adds events, with their payloads, of which the history may have references only. at is the
// last one.
func (r *run) add(
	ctx context.Context, t *decider.Task, events iter.Seq2[schemas.Event, error],
) (at int64, err error) {
	whole := func(p schemas.Payload) (schemas.Payload, error) { return t.Payload(ctx, p) }
	for e, err := range events {
		if err != nil {
			return at, err
		}
		at = e.ID
		if e, err = schemas.Whole(e, whole); err == nil {
			err = r.m.Add(e)
		}
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// live is how a decision is made. One for a run that is in memory, and is likely to stay there, is
// held back by its steps no longer than a second. Otherwise steps that take longer would begin anew
// each time, so they may take most of the time of the decision.
func live(ctx context.Context, t *decider.Task, kept bool) machine.Live {
	l := machine.Live{
		Context: ctx, Started: t.StartedID(), At: schemas.At(t.StartedAt()), NoSteps: t.Ahead(),
		Suggested: t.SuggestContinueAsNew(), Rest: t.Rest, First: time.Minute, Quick: 200 * time.Millisecond,
	}
	if until, ok := ctx.Deadline(); ok {
		l.First = time.Until(until) * 3 / 4
	}
	l.Others = l.First
	if kept {
		l.First, l.Others = min(l.First, time.Second), 10*time.Millisecond
	}
	return l
}

// explain says of a difference between code and history what it is: others may have the right code.
func explain(err error) error {
	if _, ok := errors.AsType[*machine.MismatchError](err); ok {
		return &differs{err}
	}
	return err
}

// differs is a [decider.ErrNonDeterministic] with words of its own.
type differs struct{ error }

// Is implements what errors.Is asks for.
func (*differs) Is(target error) bool { return target == decider.ErrNonDeterministic }

// Unwrap returns the difference.
func (d *differs) Unwrap() error { return d.error }

// window yields the events of a task that the run has not seen.
func window(t *decider.Task) iter.Seq2[schemas.Event, error] {
	return func(yield func(schemas.Event, error) bool) {
		for _, e := range t.Events() {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func closes(d schemas.Decision) bool {
	switch d.Attributes.(type) {
	case *schemas.CompleteWorkflow, *schemas.FailWorkflow, *schemas.CancelWorkflow,
		*schemas.ContinueAsNew:
		return true
	}
	return false
}
