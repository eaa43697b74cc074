package decider

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/droverhq/drover/schemas"
	"pgregory.net/rapid"
)

// saga plays one run: its true history, and the broker's idea of the last committed reply.
type saga struct {
	history  []schemas.Event
	previous int64
	base     *schemas.DecisionBase
	serial   int
}

// write appends an event that is like no other.
func (s *saga) write() schemas.Event {
	s.serial++
	e := schemas.Event{ID: int64(len(s.history)) + 1, Attributes: &schemas.Signal{SignalName: fmt.Sprint(s.serial)}}
	s.history = append(s.history, e)
	return e
}

func (s *saga) page(_ context.Context, _ *schemas.DecisionTask, after int64, limit int) ([]schemas.Event, bool, int, error) {
	rest := s.history[min(after, int64(len(s.history))):]
	n := min(limit, len(rest), 3)
	return slices.Clone(rest[:n]), n < len(rest), 10 * n, nil
}

// P-11 as a property: whatever becomes of the replies, the history that a decider sees is the true one.
func TestCacheShowsTheTrueHistory(t *testing.T) { // P-11
	rapid.Check(t, func(t *rapid.T) {
		c := newCache(rapid.IntRange(1, 3).Draw(t, "runs"), rapid.SampledFrom([]int{500, 3000, 1 << 20}).Draw(t, "bytes"))
		var runs [4]saga
		hits := 0
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
			s := &runs[n]
			for range rapid.IntRange(1, 4).Draw(t, "events") {
				s.write()
			}
			// What the broker shows: the committed events and, perhaps, the DeciderStarted that it will write with the answer.
			started := schemas.Event{ID: int64(len(s.history)) + 1, Attributes: &schemas.DeciderStarted{ScheduledEventID: int64(i)}}
			window := slices.Clone(s.history[s.previous:])
			shown := rapid.Bool().Draw(t, "the window shows its end")
			if shown {
				window = append(window, started)
			}
			task := &Task{pages: s.page, task: schemas.DecisionTask{
				WorkflowID: "w", Run: fmt.Sprint(n), Token: "t", PreviousStartedID: s.previous, StartedID: started.ID, Events: window, Base: s.base,
			}}
			if err := task.check(); err != nil {
				t.Fatal(err)
			}
			task.windowBytes = 10 * len(window)
			c.recall(task)
			if task.Continues() {
				hits++
			}
			if rapid.Bool().Draw(t, "the decider reads") {
				want := append(slices.Clone(s.history[:s.previous]), window...)
				check(t, task, want)
			}
			reply := fmt.Sprint("reply ", i)
			fate := rapid.SampledFrom([]string{"committed", "committed", "lost", "lost, and its id is reused", "refused", "foreign", "failed"}).Draw(t, "fate")
			if fate != "failed" && fate != "foreign" {
				c.keep(task, digest([]byte(reply)), rapid.Bool().Draw(t, "closes"))
			}
			if c.cost > c.maxCost || len(c.runs) > c.maxRuns || len(c.runs) != c.order.Len() {
				t.Fatalf("%d runs in an order of %d, cost %d", len(c.runs), c.order.Len(), c.cost)
			}
			if fate == "foreign" {
				reply = "of another worker " + reply
			}
			if fate != "lost, and its id is reused" {
				s.history = append(s.history, started)
			}
			if fate == "committed" || fate == "foreign" {
				completed := s.write()
				s.previous, s.base = started.ID, &schemas.DecisionBase{CompletedID: completed.ID, Digest: digest([]byte(reply))}
			}
		}
		t.Logf("%d hits", hits)
	})
}

// What the cache may hold is counted in bytes on the wire: also those of events that were read page by page, before the window and in it.
func TestCacheCountsWhatWasRead(t *testing.T) {
	var s saga
	for range 20 {
		s.write()
	}
	task := &Task{pages: s.page, task: schemas.DecisionTask{WorkflowID: "w", Run: "r", PreviousStartedID: 10, StartedID: 20, Events: slices.Clone(s.history[10:12])}}
	task.windowBytes = 20
	if err := task.fillWindow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := task.View(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := newCache(1, 1<<20)
	c.keep(task, "reply", false)
	if want := 20*10 + 20*eventOverhead; c.cost != want {
		t.Errorf("20 events of 10 bytes cost %d, want %d", c.cost, want)
	}
	// The next task is told what is known already, and reads only what is new.
	next := &Task{task: schemas.DecisionTask{
		WorkflowID: "w", Run: "r", PreviousStartedID: 20, StartedID: 22, Events: []schemas.Event{s.write(), s.write()},
		Base: &schemas.DecisionBase{CompletedID: 21, Digest: "reply"},
	}}
	next.windowBytes = 20
	c.recall(next)
	c.keep(next, "another reply", false)
	if want := 22*10 + 22*eventOverhead; c.cost != want {
		t.Errorf("22 events of 10 bytes cost %d, want %d", c.cost, want)
	}
	c = newCache(1, 20*10+20*eventOverhead-1)
	c.keep(task, "reply", false)
	if c.cost != 0 || len(c.runs) != 1 {
		t.Errorf("%d runs cost %d, want the proof of the reply alone", len(c.runs), c.cost)
	}
}

func check(t *rapid.T, task *Task, want []schemas.Event) {
	t.Helper()
	var got []schemas.Event
	for e, err := range task.History(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	if !slices.EqualFunc(got, want, func(a, b schemas.Event) bool { return a.ID == b.ID && a.Attributes == b.Attributes }) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}

// No body brings the worker down, and no window shows more than its task says.
func FuzzTask(f *testing.F) {
	dt := &schemas.DecisionTask{
		WorkflowID: "w", Run: "r", Type: "order", Token: "t", PreviousStartedID: 1, StartedID: 3,
		Events: []schemas.Event{{ID: 1, Attributes: &schemas.Signal{}}, {ID: 2, Attributes: &schemas.Signal{}}, {ID: 3, Attributes: &schemas.DeciderStarted{}}},
	}
	packed, err := schemas.Marshal(dt)
	if err != nil {
		f.Fatal(err)
	}
	plain, err := schemas.MarshalJSON(dt)
	if err != nil {
		f.Fatal(err)
	}
	for _, body := range [][]byte{nil, packed, plain, []byte(`{"token":"t"}`), {1, 0xdd, 0xff, 0xff, 0xff, 0xff}} {
		f.Add(body)
	}
	s := &session{}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := &ask{typ: "order"}
		a.msg.Data, a.msg.Reply = body, "reply"
		o, err := s.begin(a)
		if err != nil {
			tokenOf(body)
			return
		}
		for i, e := range o.t.Events() {
			if e.ID != o.t.PreviousStartedID()+1+int64(i) || e.ID > o.t.StartedID() {
				t.Fatalf("event %d at place %d of the window (%d, %d]", e.ID, i, o.t.PreviousStartedID(), o.t.StartedID())
			}
		}
		limit(&o.t.task, a.arrived, o.began, 0)
	})
}
