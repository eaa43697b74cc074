package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

const (
	orderType  = "order"
	orderList  = "orders"
	goSignal   = "go"
	orderValue = 21
	orderWant  = 42
)

// load is what clients do to the cluster, and what they were told. Each lane starts a workflow, signals it and waits for its
// end, again and again.
type load struct {
	t      *testing.T
	f      *fleet
	client *drover.Client
	lanes  sync.WaitGroup
	stop   chan struct{}

	mu       sync.Mutex
	runs     []*drover.Run // acknowledged
	bodies   map[string]string
	ended    int
	slowest  time.Duration // call that was answered
	changed  chan struct{} // closed at each end, then replaced
	mistakes []string
}

func connect(t *testing.T, urls string, timeout time.Duration) *drover.Client {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{URL: urls, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// workers run a decider and an activity worker of the load until the test ends.
func workers(t *testing.T, c *drover.Client) {
	t.Helper()
	deciders := c.Deciders(nil)
	deciders.Register(orderType, decider.Func(decideOrder))
	activities := c.Activities(&activity.Options{Lists: []string{orderList}})
	activity.Register(activities, "double", func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{deciders.Run, activities.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("worker: %v", err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// decideOrder does one activity and waits for one signal.
func decideOrder(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	v, err := task.View(ctx)
	if err != nil {
		return nil, err
	}
	switch status, out, reason := v.Activity("double"); {
	case status == 0:
		return []schemas.Decision{decider.Schedule("double", "double", v.Input(), decider.List(orderList))}, nil
	case status == decider.ActivitySucceeded && len(v.Signals(goSignal)) > 0:
		return []schemas.Decision{decider.Complete(out)}, nil
	case status.Closed() && status != decider.ActivitySucceeded:
		return []schemas.Decision{decider.Fail(reason, nil)}, nil
	}
	return nil, nil
}

// press begins a load on some nodes, or on all.
func (f *fleet) press(t *testing.T, lanes int, on ...int) *load {
	t.Helper()
	l := &load{
		t: t, f: f, client: connect(t, f.urls(on...), patience),
		stop: make(chan struct{}), bodies: map[string]string{}, changed: make(chan struct{}),
	}
	workers(t, l.client)
	ctx := t.Context()
	for lane := range lanes {
		l.lanes.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
					l.one(ctx, fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), lane, n))
				}
			}
		})
	}
	return l
}

func (l *load) one(ctx context.Context, id string) {
	began := time.Now()
	run, err := l.client.Start(ctx, orderType, orderValue, &drover.StartOptions{ID: id})
	if err != nil {
		l.wrong("start %s: %v", id, err)
		return
	}
	l.took(time.Since(began))
	body := fmt.Sprintf("%q", "go "+id)
	l.mu.Lock()
	l.runs, l.bodies[id] = append(l.runs, run), body
	l.mu.Unlock()
	began = time.Now()
	if err := run.Signal(ctx, goSignal, json.RawMessage(body)); err != nil {
		l.wrong("signal %s: %v", id, err)
	}
	l.took(time.Since(began))
	o, err := run.Wait(ctx)
	switch {
	case err != nil:
		l.wrong("result of %s: %v", id, err)
	case o.Status != schemas.StatusCompleted || string(o.Result) != fmt.Sprint(orderWant) || o.Run != run.RunID:
		l.wrong("%s run %s: got run %s %s %s %s, want %d", id, run.RunID, o.Run, o.Status, o.Result, o.Reason, orderWant)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended++
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *load) took(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, d)
}

// wait returns the slowest call since the last question.
func (l *load) wait() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.slowest
	l.slowest = 0
	return d.Round(time.Millisecond)
}

func (l *load) wrong(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mistakes = append(l.mistakes, fmt.Sprintf(format, args...))
}

// reach waits until so many more workflows have ended.
func (l *load) reach(more int) {
	l.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	l.mu.Lock()
	goal := l.ended + more
	for l.ended < goal {
		if len(l.mistakes) > 0 {
			break
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-limit.C:
			l.t.Fatalf("no %d workflows have ended within %v", more, patience)
		}
		l.mu.Lock()
	}
	mistakes := l.mistakes
	l.mu.Unlock()
	for _, m := range mistakes {
		l.t.Error(m)
	}
	if len(mistakes) > 0 {
		l.t.FailNow()
	}
}

// end lets every lane finish what it has begun, and checks all that was acknowledged.
func (l *load) end() {
	l.t.Helper()
	close(l.stop)
	l.lanes.Wait()
	l.reach(0)
	l.f.whole(l.t)
	for _, run := range l.runs {
		signals, closes := 0, 0
		for e := range events(l.t, run) {
			if s, ok := e.Attributes.(*schemas.Signal); ok && string(s.Input) == l.bodies[run.ID] {
				signals++
			}
			if e.Type().Closes() {
				closes++
			}
		}
		if signals != 1 || closes != 1 {
			l.t.Errorf("%s run %s: its signal is in the history %d times and it has ended %d times, want once each", run.ID, run.RunID, signals, closes)
		}
	}
	l.f.verify(l.t)
	l.t.Logf("%d workflows, each with a signal, acknowledged and ended once", len(l.runs))
}

func events(t *testing.T, run *drover.Run) func(func(schemas.Event) bool) {
	return func(yield func(schemas.Event) bool) {
		for e, err := range run.History(t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				t.Errorf("history of %s: %v", run.ID, err)
				return
			}
			if !yield(e) {
				return
			}
		}
	}
}

// verify has the command check every history.
func (f *fleet) verify(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "verify", "--json", "--timeout", "60s", "--nats", f.urls())
	out, err := cmd.Output()
	var said struct {
		OK         bool                `json:"ok"`
		Runs       int                 `json:"runs"`
		Violations []checker.Violation `json:"violations"`
	}
	if json.Unmarshal(out, &said) != nil || err != nil || !said.OK || len(said.Violations) > 0 {
		t.Fatalf("drover verify: %v: %s", err, out)
	}
}

// refused tells whether err is how a node without quorum refuses.
func refused(err error) bool {
	e, ok := errors.AsType[*drover.Error](err)
	return ok && errors.Is(err, drover.ErrUnavailable) && strings.Contains(e.Error(), "no quorum: this node sees 1 of 3 servers")
}
