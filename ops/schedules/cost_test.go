package schedules_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// The costs are measured by: go test ./ops/schedules -run TestCost -v -count=1 -args -cost.
var cost = flag.Bool("cost", false, "schedules: measure what they cost, which takes minutes")

// real is a whole Drover in real time with a scheduler, and with deciders of the type quick.
func real(t *testing.T) *drovertest.Env {
	t.Helper()
	e := drovertest.Start(t, &drovertest.Options{Partitions: 4})
	s, err := schedules.New(schedules.Options{Conn: natsconn.Of(e.Client), Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	w := e.Client.Deciders(nil)
	w.Register("quick", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
		return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
	}))
	e.Go(w, s)
	<-s.Settled()
	return e
}

// createAll makes schedules, 64 at a time.
func createAll(t *testing.T, e *drovertest.Env, n int, of func(i int) *ops.ScheduleTimes) {
	t.Helper()
	var wg sync.WaitGroup
	turns := make(chan struct{}, 64)
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			ask(t, e, "scheduleCreate", &ops.ScheduleCreateRequest{Schedule: ops.Schedule{
				ID: fmt.Sprintf("s%05d", i), Times: of(i), Overlap: ops.OverlapAllow,
				Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "quick"}},
			}})
		})
	}
	wg.Wait()
}

// lateness is how late the runs of a kind were that began after an instant, the 99th of a hundred.
func lateness(t *testing.T, e *drovertest.Env, mode schemas.StartMode, since time.Time, want int) time.Duration {
	t.Helper()
	var late []time.Duration
	for line, err := range e.Client.List(t.Context(), drover.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if at := line.StartedAt.Time(); line.StartMode == mode && !at.Before(since) {
			late = append(late, at.Sub(since))
		}
	}
	slices.Sort(late)
	if len(late) != want {
		t.Fatalf("%d runs, want %d", len(late), want)
	}
	return late[len(late)*99/100]
}

// A thousand slots of one instant, beside a thousand plain starts of one client, in pairs.
func TestCostOfOneInstant(t *testing.T) {
	if !*cost {
		t.Skip("only with -args -cost")
	}
	const n, pairs = 1000, 5
	e := real(t)
	for pair := range pairs {
		at := time.Now().Add(6 * time.Second).Truncate(time.Millisecond)
		createAll(t, e, n, func(int) *ops.ScheduleTimes {
			return &ops.ScheduleTimes{At: []schemas.Timestamp{schemas.At(at)}}
		})
		time.Sleep(time.Until(at) + 5*time.Second)
		slots := lateness(t, e, schemas.ModeSchedule, at, n)
		for i := range n {
			ask(t, e, "scheduleDelete", &ops.ScheduleRequest{ID: fmt.Sprintf("s%05d", i)})
		}
		time.Sleep(time.Second)
		began := time.Now()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if _, err := e.Client.Start(t.Context(), "quick", nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(3 * time.Second)
		plain := lateness(t, e, schemas.ModeManual, began, n)
		t.Logf("pair %d: p99 %v late by schedules, %v by plain starts: %.2f", pair, slots, plain, float64(slots)/float64(plain))
	}
}

// cpu is what this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Ten thousand schedules of a minute, beside as many plain starts.
func TestCostOfManySchedules(t *testing.T) {
	if !*cost {
		t.Skip("only with -args -cost")
	}
	const n = 10_000
	e := real(t)
	measure := func(what string, d time.Duration) {
		before, began := cpu(t), time.Now()
		time.Sleep(d)
		t.Logf("%s: %.1f %% of a core", what, 100*float64(cpu(t)-before)/float64(time.Since(began)))
	}
	measure("idle, no schedules", 20*time.Second)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Minute / n)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				wg.Go(func() {
					if r, err := e.Client.Start(t.Context(), "quick", nil, nil); err == nil {
						_, _ = r.Wait(t.Context())
					}
				})
			case <-stop:
				return
			}
		}
	})
	measure("plain starts and waits, 167 a second", time.Minute)
	close(stop)
	wg.Wait()
	createAll(t, e, n, func(i int) *ops.ScheduleTimes {
		return &ops.ScheduleTimes{Every: []ops.ScheduleInterval{{Every: schemas.Duration(time.Minute), Offset: schemas.Duration(time.Duration(i) * time.Minute / n)}}}
	})
	time.Sleep(20 * time.Second)
	measure("10,000 schedules of a minute", time.Minute)
}
