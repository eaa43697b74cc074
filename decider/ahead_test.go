package decider_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// hands plays the activity worker of list main on a connection.
type hands struct {
	full    atomic.Bool
	errands chan nearby.Errand
}

func (w *hands) Take(_ string, _ natsconn.Msg, e nearby.Errand) bool {
	if w.full.Load() {
		return false
	}
	w.errands <- e
	return true
}

// both starts a worker for type order, with hands on the same connection, and lets it make its first decision.
func (h *house) both(o *decider.Options, decide decider.Func) (w *hands, first *reply, r *running) {
	h.t.Helper()
	w = &hands{errands: make(chan nearby.Errand, 10)}
	r = h.run(o, "order", func(ctx context.Context, t *decider.Task) ([]schemas.Decision, error) {
		if t.StartedID() == 3 {
			return []schemas.Decision{decider.Schedule("a", "work", nil, decider.List("main"))}, nil
		}
		return decide(ctx, t)
	})
	h.t.Cleanup(nearby.On(r.conn).Register(nearby.List{Namespace: string(ns), Name: "main"}, w))
	return w, h.ask(window(long(3, 3), 0)), r
}

// scheduled is the history with an activity, decided at event 3.
func scheduled() []schemas.Event {
	events := long(5, 3)
	events[3].Attributes = &schemas.DeciderCompleted{StartedEventID: 3}
	events[4].Attributes = &schemas.ActivityScheduled{ActivityID: "a", ActivityType: "work", List: "main", Input: schemas.Payload(`"input"`), DeciderCompletedEventID: 4}
	return events
}

// aheadTask is what an owner sends after the first decision, at its hour 1.
func aheadTask(first *reply) *schemas.DecisionTask {
	t := window(scheduled(), 3)
	t.StartedID, t.Token, t.Base = 9, "ahead-9", first.base(4)
	t.Ahead = &schemas.AheadTask{
		Task:      schemas.ActivityTask{ScheduledEventID: 5, Attempt: 1, Type: "work", List: "main", Token: "r.5.1", Report: "report"},
		At:        schemas.Timestamp(time.Hour),
		Scheduled: schemas.DeciderScheduled{StartToCloseTimeout: schemas.Seconds(10), TaskPriority: 2, Attempt: 1},
	}
	return t
}

func success() *schemas.Report {
	return &schemas.Report{
		Kind: schemas.ReportSuccess, Token: "r.5.1", Result: schemas.Payload(`"result"`), Identity: "w", Nonce: "n", TaskSequence: 0, Elapsed: schemas.Duration(2 * time.Millisecond),
	}
}

// assumed is the history that a worker decides upon if the task of aheadTask succeeds at an instant of the owner's clock.
func assumed(at time.Duration) []schemas.Event {
	end := schemas.Timestamp(at)
	return append(scheduled(),
		schemas.Event{ID: 6, Time: end - schemas.Timestamp(2*time.Millisecond), Attributes: &schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1, Identity: "w", Nonce: "n"}},
		schemas.Event{ID: 7, Time: end, Attributes: &schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 6, Result: schemas.Payload(`"result"`)}},
		schemas.Event{ID: 8, Time: end, Attributes: &schemas.DeciderScheduled{StartToCloseTimeout: schemas.Seconds(10), TaskPriority: 2, Attempt: 1}},
		schemas.Event{ID: 9, Time: end, Attributes: &schemas.DeciderStarted{ScheduledEventID: 8}},
	)
}

// sendAhead sends a task to the worker that made the first decision.
func (h *house) sendAhead(task *schemas.DecisionTask, worker string) {
	h.t.Helper()
	body, err := schemas.Marshal(task)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.broker.PublishReply(ns.DecideSticky("order", worker), "replies.ahead", natsconn.Header{schemas.AheadHeader: {"main", "charge"}}, body); err != nil {
		h.t.Fatal(err)
	}
}

// take waits for the errand of a task that was sent, and opens it. decide returns when the outcome is told, with or without a decision: as
// an activity worker it lets the decider have a goroutine. Who tells twice blocks, which ends the bubble with an error.
func (w *hands) take(t *testing.T) (_ *schemas.ActivityTask, decide func(*schemas.Report) *schemas.AheadDecision) {
	t.Helper()
	select {
	case e := <-w.errands:
		task, decide, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		return task, func(r *schemas.Report) *schemas.AheadDecision {
			told := make(chan *schemas.AheadDecision)
			go func() {
				if d, elsewhere := decide(r, func() { told <- nil }); !elsewhere {
					told <- d
				}
			}()
			return <-told
		}
	case <-time.After(time.Minute):
		t.Fatal("no errand within a minute")
		return nil, nil
	}
}

func historyOf(t *testing.T, ctx context.Context, task *decider.Task) (all []schemas.Event) {
	t.Helper()
	for e, err := range task.History(ctx) {
		if err != nil {
			t.Error(err)
			return nil
		}
		all = append(all, e)
	}
	return all
}

// What a decider sees ahead is what the history will hold. If the broker takes the decision, the next task finds it so.
func TestDecideAhead(t *testing.T) { // P-11
	inBubble(t, func(t *testing.T, h *house) {
		s := h.serveHistory(nil, 1)
		var seen [][]schemas.Event
		var waited []time.Duration
		observer := func(o decider.Observation) { waited = append(waited, o.Waited) }
		w, first, _ := h.both(&decider.Options{Observer: observer}, func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			seen = append(seen, historyOf(t, ctx, task))
			task.SetContext(schemas.Payload(`"kept"`))
			return []schemas.Decision{decider.Marker("m", task.Continues())}, nil
		})
		if diff := cmp.Diff([]string{"main"}, first.Lists); diff != "" {
			t.Fatalf("lists (-want +got):\n%s", diff)
		}
		h.sendAhead(aheadTask(first), first.Sticky)
		task, decide := w.take(t)
		if got := string(task.Input); got != `"input"` || task.Token != "r.5.1" {
			t.Fatalf("got task %q with input %s", task.Token, got)
		}
		time.Sleep(7 * time.Millisecond)
		r := success()
		ahead := decide(r)
		if ahead == nil || ahead.Token != "ahead-9" || ahead.At != schemas.Timestamp(time.Hour+7*time.Millisecond) {
			t.Fatalf("got %+v, want a decision 7 ms after the task", ahead)
		}
		second := &reply{body: ahead.Reply}
		if err := schemas.Unmarshal(ahead.Reply, &second.DecisionReply); err != nil {
			t.Fatal(err)
		}
		second.wantDecisions(t, schemas.DecideRecordMarker)
		if second.Token != "ahead-9" || second.Sticky != first.Sticky || string(second.Context) != `"kept"` {
			t.Fatalf("got %+v", second.DecisionReply)
		}
		copy(task.Input, "XXXXXXX") // the function's own
		copy(r.Result, "XXXXXXXX")  // as if its function used the memory again
		history := append(assumed(time.Hour+7*time.Millisecond), long(13, 13)[9:]...)
		next := window(history, 9)
		next.Base = second.base(10)
		h.askSticky(next, first.Sticky).wantDecisions(t, schemas.DecideRecordMarker)
		if diff := cmp.Diff([][]schemas.Event{history[:9], history}, seen); diff != "" {
			t.Errorf("histories that were seen (-want +got):\n%s", diff)
		}
		if n := s.count(); n != 0 {
			t.Errorf("%d pages of history were read, want the cache to know it", n)
		}
		synctest.Wait() // the worker observes after its answer
		if diff := cmp.Diff([]time.Duration{0, 0, 0}, waited); diff != "" {
			t.Errorf("the decisions waited (-want +got):\n%s", diff)
		}
	})
}

// What the broker drops is forgotten: the next task rests upon the decision before, and tells by which task that was made.
func TestDecisionAheadIsDropped(t *testing.T) { // P-11
	inBubble(t, func(t *testing.T, h *house) {
		var continued []string
		var seen [][]schemas.Event
		w, first, _ := h.both(nil, func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			continued = append(continued, task.Token()+" after "+task.Continued())
			seen = append(seen, historyOf(t, ctx, task))
			return nil, nil
		})
		h.sendAhead(aheadTask(first), first.Sticky)
		_, decide := w.take(t)
		if decide(success()) == nil {
			t.Fatal("no decision was made ahead")
		}
		// Two signals came instead, so the decision has the same number.
		history := append(scheduled(), long(9, 9)[5:]...)
		task := window(history, 3)
		task.Base = first.base(4)
		second := h.askSticky(task, first.Sticky)
		more := append(history, long(13, 13)[9:]...)
		task = window(more, 9)
		task.Base = second.base(10)
		h.askSticky(task, first.Sticky)
		want := []string{"ahead-9 after token-3", "token-9 after token-3", "token-13 after token-9"}
		if diff := cmp.Diff(want, continued); diff != "" {
			t.Errorf("tasks (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([][]schemas.Event{assumed(time.Hour), history, more}, seen); diff != "" {
			t.Errorf("histories that were seen (-want +got):\n%s", diff)
		}
	})
}

// An outcome waits for no decider that takes long, fails or finds no room, and nothing is told of it: it is asked again.
func TestNoDecisionAhead(t *testing.T) {
	for name, c := range map[string]struct {
		decide decider.Func
		report func(*schemas.Report)
		took   time.Duration
		called bool
	}{
		"slow": {decide: func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			time.Sleep(time.Second)
			return nil, nil
		}, took: 20 * time.Millisecond, called: true},
		"slow, and obeys": {decide: func(ctx context.Context, _ *decider.Task) ([]schemas.Decision, error) {
			<-ctx.Done()
			time.Sleep(time.Millisecond) // at the deadline itself it may be in time
			if cause := context.Cause(ctx); !errors.Is(cause, decider.ErrDeadline) {
				return nil, cause
			}
			return nil, nil
		}, took: 20 * time.Millisecond, called: true},
		"fails":  {decide: func(context.Context, *decider.Task) ([]schemas.Decision, error) { return nil, errors.New("no") }, called: true},
		"panics": {decide: func(context.Context, *decider.Task) ([]schemas.Decision, error) { panic("no") }, called: true},
		"ends its goroutine": {decide: func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			runtime.Goexit()
			return nil, nil
		}, called: true},
		"too large": {decide: func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			return []schemas.Decision{decider.Marker("m", strings.Repeat("x", 70<<10))}, nil
		}, called: true},
		"no success": {report: func(r *schemas.Report) { r.Kind = schemas.ReportFailed }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				var calls atomic.Int64
				w, first, _ := h.both(&decider.Options{Concurrency: 2}, func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
					if calls.Add(1) == 1 && c.decide != nil {
						return c.decide(ctx, task)
					}
					return nil, nil
				})
				h.sendAhead(aheadTask(first), first.Sticky)
				_, decide := w.take(t)
				r := success()
				if c.report != nil {
					c.report(r)
				}
				began := time.Now()
				if got := decide(r); got != nil {
					t.Fatalf("got %+v, want no decision", got)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("the outcome waited for %v, want %v", took, c.took)
				}
				h.silence(2 * time.Second)
				if got := calls.Load(); (got > 0) != c.called {
					t.Errorf("the decider was called %d times", got)
				}
				task := window(assumed(time.Hour), 3)
				task.Base = first.base(4)
				h.askSticky(task, first.Sticky).wantDecisions(t)
			})
		})
	}
}

// A type whose decider was late is left alone for 1, 2, 4, … of its outcomes. One that was in time is tried each time.
func TestTardyDecider(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var slow atomic.Bool
		var calls atomic.Int64
		w, first, _ := h.both(&decider.Options{Concurrency: 4}, func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			if calls.Add(1); slow.Load() {
				time.Sleep(30 * time.Millisecond)
			}
			return nil, nil
		})
		once := func() (called, decided bool) {
			before := calls.Load()
			h.sendAhead(aheadTask(first), first.Sticky)
			_, decide := w.take(t)
			decided = decide(success()) != nil
			time.Sleep(time.Second)
			return calls.Load() > before, decided
		}
		slow.Store(true)
		var alone []int
		for n := 0; len(alone) < 10; n++ {
			called, decided := once()
			if decided {
				t.Fatal("a late decision came with an outcome")
			}
			if called {
				alone, n = append(alone, n), -1
			}
		}
		if diff := cmp.Diff([]int{0, 1, 2, 4, 8, 16, 32, 64, 128, 256}, alone); diff != "" {
			t.Errorf("outcomes between those that were waited for (-want +got):\n%s", diff)
		}
		slow.Store(false)
		for range 256 {
			if called, _ := once(); called {
				t.Fatal("an outcome was waited for too early")
			}
		}
		for range 3 {
			if _, decided := once(); !decided {
				t.Fatal("a decider that is quick again is not tried")
			}
		}
	})
}
