package broker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// works starts a process with a worker of list main, whose activities f does. kill ends it as the end of the process does, stop as SIGTERM.
func (f *fleet) works(name string, do func(ctx context.Context, kill func()) error) (stop func(), killed <-chan struct{}) {
	f.t.Helper()
	wire := cutwire.New(f)
	conn, err := natsconn.Dial(context.Background(), natsconn.Options{InProcess: wire, Name: name, Logger: f.log})
	if err != nil {
		f.t.Fatal(err)
	}
	w := activity.New(conn, &activity.Options{Identity: name, Logger: f.log, Lists: []string{"main"}, DrainTimeout: time.Second})
	activity.Register(w, "work", func(ctx context.Context, _ any) (string, error) { return name, do(ctx, wire.Kill) })
	run := f.employs(w.Run)
	return func() { _ = run(); conn.Close() }, wire.Killed()
}

// An activity that ends the process of whoever runs it is done for after ten of them, whatever its retry policy says.
func TestPoisonousActivityEnds(t *testing.T) { // R5
	for name, tt := range map[string]struct {
		more  string
		losts int
	}{
		"the default":             {"", schemas.DefaultMaximumInterruptions},
		"with a policy":           {`,"retry":{"maximumAttempts":2}`, schemas.DefaultMaximumInterruptions},
		"with a limit of its own": {`,"maximumInterruptions":3`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(tt.more))
				var runs atomic.Int64
				over := make(chan struct{})
				supervised := make(chan struct{})
				go func() { // a supervisor
					defer close(supervised)
					for {
						stop, killed := f.works("w", func(_ context.Context, kill func()) error {
							runs.Add(1)
							time.Sleep(100 * time.Millisecond) // until its start is announced
							kill()
							return nil
						})
						select {
						case <-killed:
							stop()
						case <-over:
							stop()
							return
						}
					}
				}()
				f.start(startO)
				for range 30 { // a loss is found by the end of a lease
					if f.happened("o", schemas.EventWorkflowSuccess) > 0 {
						break
					}
					time.Sleep(10 * time.Second)
				}
				close(over)
				<-supervised
				f.completes("o")
				if n := f.happened("o", schemas.EventActivityInterrupted); n != tt.losts || runs.Load() != int64(tt.losts) {
					t.Errorf("%d workers were lost by %d attempts, want %d of both", n, runs.Load(), tt.losts)
				}
				for _, e := range f.recorded("o") {
					if a, ok := e.Attributes.(*schemas.ActivityFailed); ok && a.Reason == schemas.ReasonInterrupted && len(a.Details) > 0 {
						return
					}
				}
				t.Errorf("no failure says why: %v", f.recordedTypes("o"))
			})
		})
	}
}

// A rolling restart of all workers, however often, fails no activity: neither one whose function heeds the end of its context, nor one that
// does not.
func TestRestartsFailNoActivity(t *testing.T) { // R5
	for name, heeds := range map[string]bool{"it stops with its worker": true, "it does not heed its context": false} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", one(`,"retry":{"maximumAttempts":1}`))
				var done atomic.Bool
				long := func(ctx context.Context, _ func()) error {
					for end := time.Now().Add(20 * time.Minute); time.Now().Before(end) && !done.Load(); time.Sleep(time.Second) {
						if heeds && ctx.Err() != nil {
							return ctx.Err()
						}
					}
					return nil
				}
				const restarts = schemas.DefaultMaximumInterruptions + 2
				stop, _ := f.works("w", long)
				f.start(startO)
				for n := range restarts {
					f.awaitTimes("o", schemas.EventActivityStarted, n+1)
					next, _ := f.works("w", long)
					stop()
					stop = next
				}
				f.awaitTimes("o", schemas.EventActivityStarted, restarts+1)
				done.Store(true)
				f.completes("o")
				stop()
				if n := f.happened("o", schemas.EventActivityFailed); n != 0 {
					t.Fatalf("it failed after %d restarts: %v", restarts, f.recordedTypes("o"))
				}
				if n := len(f.dead()); n != 0 {
					t.Fatalf("%d dead letters, want none: %v", n, f.letters())
				}
			})
		})
	}
}
