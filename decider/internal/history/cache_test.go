package history

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
	mine     bool // the last committed reply is this worker's
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

// P-11 as a property: whatever becomes of the replies, the history that a decider sees is the true one. As long as there is room for the
// runs, it is told whether it goes on from its own last reply, however little room there is for histories.
func TestCacheShowsTheTrueHistory(t *testing.T) { // P-11
	rapid.Check(t, func(t *rapid.T) {
		c := NewCache(rapid.IntRange(1, 4).Draw(t, "runs"), rapid.SampledFrom([]int{500, 3000, 1 << 20}).Draw(t, "bytes"))
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
			known := &Known{Pages: s.page, Window: 10 * len(window)}
			task := &schemas.DecisionTask{
				WorkflowID: "w", Run: fmt.Sprint(n), Token: "t", PreviousStartedID: s.previous, StartedID: started.ID, Events: window, Base: s.base,
			}
			c.Recall(task, known)
			_, continued := known.Continued()
			if continued {
				hits++
			}
			if continued && !s.mine || !continued && s.mine && c.maxRuns >= len(runs) {
				t.Fatalf("run %d goes on from its last reply: %v; the last committed one is its own: %v", n, continued, s.mine)
			}
			if rapid.Bool().Draw(t, "the decider reads") {
				want := append(slices.Clone(s.history[:s.previous]), window...)
				check(t, task, known, want)
			}
			reply := fmt.Sprint("reply ", i)
			fate := rapid.SampledFrom([]string{"committed", "committed", "lost", "lost, and its id is reused", "refused", "foreign", "failed"}).Draw(t, "fate")
			if fate != "failed" && fate != "foreign" {
				c.Keep(task, known, Digest([]byte(reply)), rapid.Bool().Draw(t, "closes"))
			}
			if err := c.sound(); err != nil {
				t.Fatal(err)
			}
			if fate == "foreign" {
				reply = "of another worker " + reply
			}
			if fate != "lost, and its id is reused" {
				s.history = append(s.history, started)
			}
			if fate == "committed" || fate == "foreign" {
				completed := s.write()
				s.mine = fate == "committed"
				s.previous, s.base = started.ID, &schemas.DecisionBase{CompletedID: completed.ID, Digest: Digest([]byte(reply))}
			}
		}
		t.Logf("%d hits", hits)
	})
}

// sound checks what the cache says of itself.
func (c *Cache) sound() error {
	cost, costly := 0, 0
	for _, k := range c.runs {
		cost += k.cost
		if (k.costly != nil) != (k.events != nil) || k.events == nil && k.cost > 0 {
			return fmt.Errorf("run %v has %d events that cost %d", k.key, len(k.events), k.cost)
		}
		if k.costly != nil {
			costly++
		}
	}
	if c.cost > c.maxCost || cost != c.cost || len(c.runs) > c.maxRuns || len(c.runs) != c.order.Len() || costly != c.costly.Len() {
		return fmt.Errorf("%d runs in an order of %d, %d with events in an order of %d, that cost %d, counted as %d",
			len(c.runs), c.order.Len(), costly, c.costly.Len(), cost, c.cost)
	}
	return nil
}

// Events go before proofs: those of the run that was unused for longest, and those of a closed run first.
func TestEventsAreForgottenFirst(t *testing.T) {
	const most = 2 * eventOverhead
	c := NewCache(10, most)
	keep := func(run string, closes bool) {
		task := &schemas.DecisionTask{WorkflowID: "w", Run: run, StartedID: 1, Token: "of " + run, Events: []schemas.Event{{ID: 1}}}
		c.Keep(task, &Known{}, "digest", closes)
	}
	for _, step := range []struct {
		run    string
		closes bool
		events string // the runs that have some
	}{
		{"a", false, "a"}, {"b", false, "ab"}, {"c", false, "bc"}, {"b", false, "bc"}, {"d", false, "bd"}, {"e", true, "bd"}, {"f", false, "df"},
	} {
		keep(step.run, step.closes)
		got := ""
		for _, run := range []string{"a", "b", "c", "d", "e", "f"} {
			if k := c.runs[runKey{"w", run}]; k != nil && k.events != nil {
				got += run
			}
		}
		if err := c.sound(); err != nil || got != step.events {
			t.Errorf("after %s: runs %q have their events, want %q; %v", step.run, got, step.events, err)
		}
	}
	for _, run := range []string{"a", "b", "c", "d", "e", "f"} {
		known := &Known{}
		c.Recall(&schemas.DecisionTask{
			WorkflowID: "w", Run: run, PreviousStartedID: 1, StartedID: 3, Base: &schemas.DecisionBase{CompletedID: 2, Digest: "digest"},
		}, known)
		if token, ok := known.Continued(); !ok || token != "of "+run {
			t.Errorf("run %s goes on from %q, %v; want from its own last reply", run, token, ok)
		}
	}
}

// What the cache may hold is counted in bytes on the wire: also those of events that were read page by page, before the window and in it.
func TestCacheCountsWhatWasRead(t *testing.T) {
	var s saga
	for range 20 {
		s.write()
	}
	known := &Known{Pages: s.page, Window: 20}
	task := &schemas.DecisionTask{WorkflowID: "w", Run: "r", PreviousStartedID: 10, StartedID: 20, Events: slices.Clone(s.history[10:12])}
	if err := known.FillWindow(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	known.Each(t.Context(), task, func(_ schemas.Event, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		return true
	})
	c := NewCache(1, 1<<20)
	c.Keep(task, known, "reply", false)
	if want := 20*10 + 20*eventOverhead; c.cost != want {
		t.Errorf("20 events of 10 bytes cost %d, want %d", c.cost, want)
	}
	// The next task is told what is known already, and reads only what is new.
	next := &schemas.DecisionTask{
		WorkflowID: "w", Run: "r", PreviousStartedID: 20, StartedID: 22, Events: []schemas.Event{s.write(), s.write()},
		Base: &schemas.DecisionBase{CompletedID: 21, Digest: "reply"},
	}
	nextKnown := &Known{Window: 20}
	c.Recall(next, nextKnown)
	c.Keep(next, nextKnown, "another reply", false)
	if want := 22*10 + 22*eventOverhead; c.cost != want {
		t.Errorf("22 events of 10 bytes cost %d, want %d", c.cost, want)
	}
	c = NewCache(1, 20*10+20*eventOverhead-1)
	c.Keep(task, known, "reply", false)
	if c.cost != 0 || len(c.runs) != 1 {
		t.Errorf("%d runs cost %d, want the proof of the reply alone", len(c.runs), c.cost)
	}
}

func check(t *rapid.T, task *schemas.DecisionTask, known *Known, want []schemas.Event) {
	t.Helper()
	var got []schemas.Event
	known.Each(t.Context(), task, func(e schemas.Event, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
		return true
	})
	if !slices.EqualFunc(got, want, func(a, b schemas.Event) bool { return a.ID == b.ID && a.Attributes == b.Attributes }) {
		t.Fatalf("got  %v\nwant %v", got, want)
	}
}

// A run that was closed is the first to be forgotten: it is asked again only if its close is refused.
func TestClosedRunsAreForgottenFirst(t *testing.T) {
	c := NewCache(2, 1<<20)
	for i, closes := range []bool{false, true, false} {
		task := &schemas.DecisionTask{WorkflowID: "w", Run: fmt.Sprint(i), StartedID: 1, Events: []schemas.Event{{ID: 1}}}
		c.Keep(task, &Known{}, "digest", closes)
	}
	for i, want := range []bool{true, false, true} {
		if _, got := c.runs[runKey{"w", fmt.Sprint(i)}]; got != want {
			t.Errorf("run %d is kept: %v, want %v", i, got, want)
		}
	}
}
