package windows_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/windows"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const ns = subject.Namespace("default")

// house is a whole Drover in virtual time, in which nodes live as the test says.
type house struct {
	*drovertest.Env
	t *testing.T
}

func live(t *testing.T, fn func(h *house)) {
	t.Helper()
	sample.OneOfEight(t)
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		w := e.Client.Deciders(nil)
		w.Register("report", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
		}))
		w.Register("echo", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			started, _ := task.Events()[0].Attributes.(*schemas.WorkflowStarted)
			return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{Result: started.Input})}, nil
		}))
		e.Go(w)
		fn(&house{Env: e, t: t})
	})
}

// windows are those of a node that does not live yet.
func (h *house) windows(name string) *windows.Windows {
	h.t.Helper()
	return h.windowsBefore(name, nil)
}

func (h *house) windowsBefore(name string, before func(what string) error) *windows.Windows {
	h.t.Helper()
	w, err := windows.New(windows.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Node: name, Before: before})
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

// node begins a node; kill ends it. before is called before it changes anything; an error ends the step there.
func (h *house) node(name string, before func(what string) error) (kill func()) {
	h.t.Helper()
	return h.run(h.windowsBefore(name, before))
}

func (h *house) run(w *windows.Windows) (kill func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			h.t.Errorf("a node: %v", err)
		}
	})
	kill = sync.OnceFunc(func() { cancel(); ended.Wait() })
	h.t.Cleanup(kill)
	return kill
}

// schedule stores a schedule that is due from 00:10 to 01:10, at twelve triggers.
func (h *house) schedule(id string, change func(s *ops.Schedule)) {
	h.t.Helper()
	s := ops.Schedule{
		ID:     id,
		Window: &ops.ScheduleWindow{Opens: "00:10", Length: schemas.Duration(time.Hour), Every: schemas.Duration(5 * time.Minute)},
		Action: ops.ScheduleAction{Start: &schemas.StartRequest{Type: "report"}},
	}
	if change != nil {
		change(&s)
	}
	now := schemas.At(time.Now())
	body, err := schemas.MarshalJSON(&ops.ScheduleRecord{V: schemas.Version, Schedule: s, Incarnation: "i1", CreatedAt: now, Since: now})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := natsconn.Of(h.Client).KVCreate(h.t.Context(), ns.BucketSchedules(), "schedule."+id, body, 0); err != nil {
		h.t.Fatal(err)
	}
}

// state is what the schedule has counted.
func (h *house) state(id string) (s ops.ScheduleState) {
	h.t.Helper()
	value, _, err := natsconn.Of(h.Client).KVGet(h.t.Context(), ns.BucketSchedules(), "schedule."+id+".state")
	if errors.Is(err, natsconn.ErrNotFound) {
		return s
	}
	if err == nil {
		err = schemas.Unmarshal(value, &s)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// runs are those that schedules have started.
func (h *house) runs() (all []schemas.ExecutionInfo) {
	h.t.Helper()
	for line, err := range h.Client.List(h.t.Context(), drover.ListOptions{}) {
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

// until lets time pass to a time of the first day.
func (h *house) until(clock string) {
	h.t.Helper()
	at, err := time.Parse("2006-01-02 15:04:05", "2000-01-01 "+clock)
	if err != nil {
		h.t.Fatal(err)
	}
	time.Sleep(time.Until(at))
}

// S2-10, S2-11: of three nodes each lives at a few triggers. The run starts once, at the first trigger at which one lives, and says what
// began it.
func TestThreeNodes(t *testing.T) {
	live(t, func(h *house) {
		h.schedule("nightly", nil)
		h.until("00:01:00")
		a, b := h.node("a", nil), h.node("b", nil)
		h.until("00:09:30") // both die just before the window opens
		a()
		b()
		h.until("00:17:00")
		c := h.node("c", nil)
		h.until("00:21:00")
		h.node("a", nil)
		c()
		h.until("01:11:00")
		runs := h.runs()
		if len(runs) != 1 {
			h.t.Fatalf("%d runs, want 1: %+v", len(runs), runs)
		}
		run, err := h.Client.Run(runs[0].WorkflowID, runs[0].Run).Describe(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		s := run.Started
		if runs[0].WorkflowID != "nightly/2000-01-01T00:10:00Z" || s.Attributes["schedule"] != "nightly" || s.Attributes["slot"] != "2000-01-01T00:10:00Z" || s.Mode() != schemas.ModeSchedule {
			h.t.Errorf("the run is %q, %+v, mode %q", runs[0].WorkflowID, s.Attributes, s.Mode())
		}
		if begun := run.Execution.StartedAt.Time(); begun.Before(time.Date(2000, 1, 1, 0, 20, 0, 0, time.UTC)) || begun.After(time.Date(2000, 1, 1, 0, 20, 5, 0, time.UTC)) {
			h.t.Errorf("it began at %v, want 00:20, the first trigger at which a node lived", begun)
		}
		if c := h.state("nightly").Counts; c.Started != 1 || c.Missed != 0 {
			h.t.Errorf("counted %+v", c)
		}
	})
}

// S2-10: a window at no trigger of which a node lived is missed; that is counted once, and told.
func TestMissedWindow(t *testing.T) {
	live(t, func(h *house) {
		h.schedule("nightly", nil)
		h.until("01:06:00")
		h.node("a", nil)
		h.node("b", nil)
		h.until("01:12:00")
		if runs := h.runs(); len(runs) != 0 {
			h.t.Errorf("a window that nobody saw has started %+v", runs)
		}
		if c := h.state("nightly").Counts; c.Missed != 1 || c.Started != 0 {
			h.t.Errorf("counted %+v, want one that was missed", c)
		}
		var told []ops.Operation
		err := natsconn.Of(h.Client).Scan(h.t.Context(), ns.StreamOperations(), natsconn.ReadOptions{}, func(s natsconn.Stored) error {
			var o ops.Operation
			err := schemas.Unmarshal(s.Data, &o)
			told = append(told, o)
			return err
		})
		if err != nil || len(told) != 1 || told[0].Kind != ops.OperationWindowMissed || told[0].Subject != "nightly" {
			h.t.Errorf("operations %+v, error %v, want one windowMissed", told, err)
		}
	})
}

var errDead = errors.New("the node is dead")

// dies is the answer of a node that is dead from now on, or was before.
func dies(dead *atomic.Bool, now bool) error {
	if now {
		dead.Store(true)
	}
	if dead.Load() {
		return errDead
	}
	return nil
}

// S2-11: a node that dies at any step of a window leaves it to others: the run starts once, within the window or after its end.
func TestDeathAtEveryStep(t *testing.T) {
	for _, step := range []string{"create period.", "start period.", "mark period.", "count schedule."} {
		for _, at := range []string{"00:11:00", "00:30:00"} { // when another one comes
			t.Run(step+at, func(t *testing.T) {
				live(t, func(h *house) {
					h.schedule("nightly", func(s *ops.Schedule) { s.Window.Length = schemas.Duration(15 * time.Minute) })
					var dead atomic.Bool
					h.until("00:09:00")
					kill := h.node("a", func(what string) error {
						return dies(&dead, strings.HasPrefix(what, step))
					})
					h.until("00:10:05")
					if !dead.Load() {
						h.t.Fatalf("it never came to %s", step)
					}
					kill()
					h.until(at)
					h.node("b", nil)
					time.Sleep(16 * time.Minute)
					runs, c := h.runs(), h.state("nightly").Counts
					lost := step == "create period." && at > "00:2" // nothing was begun, and no node lived at another trigger
					if want := map[bool]int{false: 1, true: 0}[lost]; len(runs) != want || int(c.Started) != want || int(c.Missed) != 1-want {
						h.t.Errorf("%d runs, counted %+v, want %d", len(runs), c, want)
					}
				})
			})
		}
	}
}

// A start that the service refuses for good is counted and told, and is not repeated.
func TestRefusedStart(t *testing.T) {
	live(t, func(h *house) {
		h.schedule("nightly", func(s *ops.Schedule) {
			s.Action.Start.WorkflowID, s.Action.Start.IDReusePolicy = "taken", schemas.ReuseReject
		})
		if _, err := h.Client.Start(h.t.Context(), "report", nil, &drover.StartOptions{ID: "taken"}); err != nil {
			h.t.Fatal(err)
		}
		h.until("00:09:00")
		h.node("a", nil)
		h.until("00:40:00")
		s := h.state("nightly")
		if s.Counts.Refused != 1 || s.Counts.Started != 0 || len(s.Recent) != 1 || !strings.Contains(s.Recent[0].Reason, "taken") {
			h.t.Errorf("state %+v, want one that was refused, with the reason", s)
		}
		if len(h.runs()) != 1 {
			h.t.Error("it started all the same")
		}
	})
}

// A window may send a signal instead; it is sent once.
func TestWindowWithSignal(t *testing.T) {
	live(t, func(h *house) {
		w := h.Client.Deciders(nil)
		var got atomic.Int32
		w.Register("waits", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, e := range task.Events() {
				if a, ok := e.Attributes.(*schemas.Signal); ok && a.SignalName == "go" {
					got.Add(1)
				}
			}
			return nil, nil
		}))
		h.Go(w)
		if _, err := h.Client.Start(h.t.Context(), "waits", nil, &drover.StartOptions{ID: "waiter"}); err != nil {
			h.t.Fatal(err)
		}
		h.schedule("nightly", func(s *ops.Schedule) {
			s.Action = ops.ScheduleAction{Signal: &schemas.SignalRequest{WorkflowID: "waiter", Name: "go"}}
		})
		h.until("00:09:00")
		for i := range 3 {
			h.node(fmt.Sprint("n", i), nil)
		}
		h.until("00:40:00")
		if c := h.state("nightly").Counts; got.Load() != 1 || c.Done != 1 {
			h.t.Errorf("%d signals, counted %+v, want one", got.Load(), c)
		}
	})
}
