package drovertest

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

const (
	// look is how often a call that waits tries to leap. Longer than the delay after which a broker
	// has made every alarm durable.
	look = 3 * time.Second
	// patience is longer than any run lives by default.
	patience = 2 * 365 * 24 * time.Hour
)

// Sleep lets d pass. What is due meanwhile happens at its time. Inside [Run] it leaps over time in
// which nothing is due.
func (e *Env) Sleep(d time.Duration) {
	e.t.Helper()
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, time.Until(nextLook())))
		e.stopIfFailed()
		e.leap(until)
	}
}

// Wait waits until the run has ended and returns how. A run that continued as new is followed.
// Inside [Run] it leaps over time in which nothing is due. It fails the test if the run has not
// ended after two years.
func (e *Env) Wait(run *drover.Run) *drover.Outcome {
	e.t.Helper()
	var out *drover.Outcome
	e.poll(func(ctx context.Context) (err error) {
		out, err = run.Wait(ctx)
		return err
	})
	return out
}

// Result is like [Env.Wait], but it fails the test unless the run completes, and decodes the result
// into out as [drover.Run.Result] does.
func (e *Env) Result(run *drover.Run, out any) {
	e.t.Helper()
	e.poll(func(ctx context.Context) error { return run.Result(ctx, out) })
}

// Result is like [Env.Wait], and returns what a run of a contract has returned: its result, or the
// error in which [errors.Is] finds its fault.
func Result[Out any](e *Env, run *drover.TypedRun[Out]) (Out, error) {
	e.t.Helper()
	e.Wait(run.Run)
	return run.Result(e.t.Context())
}

// Await waits until the history of the workflow's open or latest run has an event of a type, and
// returns the first one. It fails the test if the workflow was never started (a child begins when
// its parent has the event ChildStarted), when the run ends without, and after two years. Inside
// [Run] it leaps over time in which nothing is due.
func (e *Env) Await(id string, typ schemas.EventType) schemas.Event {
	e.t.Helper()
	var found, last schemas.Event
	run, after := e.Client.Run(id, ""), int64(0)
	e.poll(func(ctx context.Context) error {
		if run.RunID == "" { // stay with the run that is meant now
			now, err := run.Describe(ctx)
			if err != nil {
				return err
			}
			run.RunID = now.Execution.Run
		}
		for event, err := range run.History(ctx, drover.HistoryOptions{After: after, Follow: true}) {
			if err != nil {
				return err
			}
			if last, after = event, event.ID; event.Type() == typ {
				found = event
				return nil
			}
		}
		return fmt.Errorf("workflow %q run %s has ended (%s) without the event %s",
			id, run.RunID, last.Type(), typ)
	})
	return found
}

// poll calls try until it returns nil, and leaps in between. Any error but that of its ctx fails
// the test.
func (e *Env) poll(try func(context.Context) error) {
	e.t.Helper()
	// The end of the test's own context must not look like a failure of what its cleanups wait for.
	ctx := context.WithoutCancel(e.t.Context())
	for end := time.Now().Add(patience); ; {
		bounded, cancel := context.WithDeadline(ctx, nextLook())
		err := try(bounded)
		timeout := bounded.Err() != nil
		cancel()
		switch {
		case err == nil:
			return
		case !timeout:
			e.t.Fatalf("drovertest: %v", err)
		}
		e.stopIfFailed()
		if time.Now().After(end) {
			e.t.Fatalf("drovertest: not waiting any longer than %v: %v", patience, err)
		}
		e.leap(end)
	}
}

// nextLook is the same for all goroutines, so that those that wait at the same time leap together.
// One that asked while another leaps would end the leap.
func nextLook() time.Time { return time.Now().Truncate(look).Add(look) }

// stopIfFailed ends a wait in a test that has failed elsewhere: in an activity, for instance, whose
// run may then never end.
func (e *Env) stopIfFailed() {
	e.t.Helper()
	if e.t.Failed() {
		e.t.Fatal("drovertest: not waiting any longer, since the test has failed meanwhile")
	}
}
