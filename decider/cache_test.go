package decider_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// chronicle is a decider that reads its whole history and says what it saw.
type chronicle struct {
	t *testing.T

	mu        sync.Mutex
	continues bool
	seen      []schemas.Event
}

func (c *chronicle) decide(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
	var seen []schemas.Event
	for e, err := range task.History(ctx) {
		if err != nil {
			return nil, err
		}
		seen = append(seen, e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.continues, c.seen = task.Continues(), seen
	return []schemas.Decision{decider.Marker(fmt.Sprintf("saw %d", len(seen)), nil)}, nil
}

// want checks what the last Decide saw.
func (c *chronicle) want(events []schemas.Event, continues bool) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if diff := cmp.Diff(events, c.seen); diff != "" {
		c.t.Fatalf("history (-want +got):\n%s", diff)
	}
	if c.continues != continues {
		c.t.Fatalf("Continues is %v, want %v", c.continues, continues)
	}
}

// parts is a history of three: 1 to 3, 4 to 8, 9 to 14. Each part ends with a DeciderStarted, and the later ones begin
// with a DeciderCompleted.
func parts() []schemas.Event {
	all := long(14, 3, 8, 14)
	all[3].Attributes = &schemas.DeciderCompleted{StartedEventID: 3}
	all[8].Attributes = &schemas.DeciderCompleted{StartedEventID: 8}
	return all
}

// decideTwice lets a worker answer for the first two parts, so that it has a history in its cache.
func (h *house) decideTwice(all []schemas.Event) (s *histories, c *chronicle, second *reply) {
	h.t.Helper()
	s, c = h.serveHistory(all, 100), &chronicle{t: h.t}
	h.run(nil, "order", c.decide)
	r := h.ask(window(all[:3], 0))
	c.want(all[:3], false)
	task := window(all[:8], 3)
	task.Base = r.base(4)
	second = h.askSticky(task, r.Sticky)
	c.want(all[:8], true)
	if got := s.count(); got != 0 {
		h.t.Fatalf("P-11: %d pages were read with a proven base", got)
	}
	return s, c, second
}

// P-11: a sticky decider proves its base.
func TestStickyDeciderProvesItsBase(t *testing.T) { // P-11
	for name, c := range map[string]struct {
		base      func(mine, foreign *reply) *schemas.DecisionBase
		foreign   bool // another worker answered the second task too, and its reply was committed
		continues bool
		pages     int
	}{
		"own reply was committed":     {func(mine, _ *reply) *schemas.DecisionBase { return mine.base(9) }, false, true, 0},
		"foreign reply was committed": {func(_, foreign *reply) *schemas.DecisionBase { return foreign.base(9) }, true, false, 1},
		"unknown digest": {func(*reply, *reply) *schemas.DecisionBase {
			return &schemas.DecisionBase{CompletedID: 9, Digest: "0011223344556677"}
		}, false, false, 1},
		"completed before it started": {func(mine, _ *reply) *schemas.DecisionBase { return mine.base(8) }, false, false, 1},
		"no base":                     {func(*reply, *reply) *schemas.DecisionBase { return nil }, false, false, 1},
	} {
		t.Run("P-11 "+name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				s, chronicle, mine := h.decideTwice(parts())
				history, foreign := parts(), mine
				if c.foreign {
					// The owner changed while the reply was on its way. The new owner wrote other events from 5 on, and another
					// worker decided on those.
					for i := 4; i < 7; i++ {
						history[i].Attributes = &schemas.Signal{SignalName: "another past"}
					}
					s.events = history
					foreign = h.foreign(window(history[:8], 3))
				}
				task := window(history, 8)
				task.Base = c.base(mine, foreign)
				r := h.askSticky(task, mine.Sticky)
				r.wantDecisions(t, schemas.DecideRecordMarker)
				chronicle.want(history, c.continues)
				if got := s.count(); got != c.pages {
					t.Fatalf("%d pages were read, want %d", got, c.pages)
				}
			})
		})
	}
}

func TestStickyDeciderAfterOtherTasks(t *testing.T) { // P-11
	t.Run("P-11 the window does not follow the reply", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			all := parts()
			s, c, mine := h.decideTwice(all)
			task := window(all, 3)
			task.Base = mine.base(9)
			h.askSticky(task, mine.Sticky)
			c.want(all, false)
			if got := s.count(); got != 1 {
				t.Fatalf("%d pages were read, want 1", got)
			}
		})
	})
	t.Run("P-11 the last reply was refused, the one before holds", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			all := parts()
			s, c, second := h.decideTwice(all)
			task := window(all[:11], 8)
			task.Base = second.base(9)
			refused := h.askSticky(task, second.Sticky)
			if refused.Error != nil {
				t.Fatal(refused.Error)
			}
			for range 2 { // the broker asks again from after the last committed decision
				again := window(all, 8)
				again.Base = second.base(9)
				h.askSticky(again, second.Sticky)
				c.want(all, true)
			}
			if got := s.count(); got != 0 {
				t.Fatalf("%d pages were read, want none", got)
			}
		})
	})
	t.Run("P-11 a failed decide changes nothing", func(t *testing.T) {
		inBubble(t, func(t *testing.T, h *house) {
			all := parts()
			s, c := h.serveHistory(all, 100), &chronicle{t: t}
			h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
				if _, err := c.decide(ctx, task); err != nil || task.StartedID() == 8 {
					return nil, fmt.Errorf("not now: %w", err)
				}
				return nil, nil
			})
			r := h.ask(window(all[:3], 0))
			failed := window(all[:8], 3)
			failed.Base = r.base(4)
			if got := h.askSticky(failed, r.Sticky); got.Error == nil {
				t.Fatal("want an error")
			}
			again := window(all, 3)
			again.Base = r.base(4)
			h.askSticky(again, r.Sticky).wantDecisions(t)
			c.want(all, true)
			if got := s.count(); got != 0 {
				t.Fatalf("%d pages were read, want none", got)
			}
		})
	})
}

// foreign lets another worker answer a task.
func (h *house) foreign(task *schemas.DecisionTask) *reply {
	h.t.Helper()
	task.Type = "foreign"
	h.run(&decider.Options{Identity: "foreign"}, "foreign", nothing)
	return h.ask(task)
}

// The DeciderStarted that the broker had not written when it asked is read when the history is asked for.
func TestCacheReadsTheEventThatWasMissing(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		all := long(8, 3, 8)
		s, c := h.serveHistory(all, 100), &chronicle{t: t}
		h.run(nil, "order", c.decide)
		task := window(all[:3], 0)
		task.Events = task.Events[:2]
		r := h.ask(task)
		c.want(all[:2], false)
		next := window(all, 3)
		next.Base = r.base(4)
		h.askSticky(next, r.Sticky)
		c.want(all, true)
		if diff := cmp.Diff([]schemas.HistoryRequest{{WorkflowID: "w", Run: "r", After: 2, Limit: 1}}, s.requests); diff != "" {
			t.Fatalf("history requests (-want +got):\n%s", diff)
		}
	})
}

func TestStickyCacheBounds(t *testing.T) {
	task := func(run string, all []schemas.Event, previous int64) *schemas.DecisionTask {
		d := window(all, previous)
		d.Run = run
		return d
	}
	all := long(8, 3, 8)
	big := long(8, 3, 8)
	big[1].Attributes = &schemas.Signal{SignalName: "s2", Input: schemas.Payload(`"` + strings.Repeat("x", 5000) + `"`)}
	for name, c := range map[string]struct {
		runs, bytes int
		events      []schemas.Event
		pages       []int // read for the second task of each run
	}{
		"room for all":       {3, 0, all, []int{0, 0, 0}},
		"one run too many":   {2, 0, all, []int{1, 0, 0}},
		"one byte too many":  {3, 15_500, big, []int{1, 0, 0}},
		"larger than it all": {3, 4000, big, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				s, ch := h.serveHistory(c.events, 100), &chronicle{t: t}
				h.run(&decider.Options{StickyCache: c.runs, StickyBytes: c.bytes}, "order", ch.decide)
				var first []*reply
				for i := range c.pages {
					first = append(first, h.ask(task(fmt.Sprint(i), c.events[:3], 0)))
				}
				// From the youngest to the oldest, so that the second tasks push out nothing that is still to be looked for.
				for i := len(first) - 1; i >= 0; i-- {
					before, d := s.count(), task(fmt.Sprint(i), c.events, 3)
					d.Base = first[i].base(4)
					h.askSticky(d, first[i].Sticky)
					ch.mu.Lock()
					got, continues := len(ch.seen), ch.continues
					ch.mu.Unlock()
					if want := c.runs == 3 || i > 0; continues != want { // also if the events are gone
						t.Errorf("run %d goes on from its last answer: %v, want %v", i, continues, want)
					}
					if pages := s.count() - before; pages != c.pages[i] || got != 8 {
						t.Errorf("run %d: %d events, %d of the pages read; want 8 and %d", i, got, pages, c.pages[i])
					}
				}
			})
		})
	}
}

func TestStickyCacheOff(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		all := long(8, 3, 8)
		s, c := h.serveHistory(all, 100), &chronicle{t: t}
		h.run(&decider.Options{StickyCache: -1}, "order", c.decide)
		r := h.ask(window(all[:3], 0))
		if r.Sticky != "" {
			t.Fatalf("sticky is %q, want none", r.Sticky)
		}
		next := window(all, 3)
		next.Base = r.base(4)
		h.ask(next)
		c.want(all, false)
		if got := s.count(); got != 1 {
			t.Fatalf("%d pages were read, want 1", got)
		}
	})
}

// After a change of owner the same task may be asked twice at once. Both see the same history, and the cache survives.
func TestSameTaskTwiceAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		all := long(200, 3, 100, 200)
		h.serveHistory(all, 1000)
		h.run(nil, "order", func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
			time.Sleep(time.Second)
			if got := len(ids(t, ctx, task)); int64(got) != task.StartedID() {
				t.Errorf("got %d events, want %d", got, task.StartedID())
			}
			return nil, nil
		})
		r := h.ask(window(all[:3], 0))
		for _, upTo := range []int64{100, 200} {
			var last *reply
			for i := range 4 {
				task := window(all[:upTo], r.started(t))
				task.Base, task.Token = r.base(r.started(t)+1), fmt.Sprintf("token-%d", upTo)
				task.Attempt = i + 1
				body, err := schemas.Marshal(task)
				if err != nil {
					t.Fatal(err)
				}
				h.send(ns.DecideSticky("order", r.Sticky), body, "one")
			}
			synctest.Wait()
			for range 4 {
				last = h.receive()
				last.wantDecisions(t)
			}
			r = last
		}
	})
}

// started reads the DeciderStarted out of the tests' tokens.
func (r *reply) started(t *testing.T) (id int64) {
	t.Helper()
	if _, err := fmt.Sscanf(r.Token, "token-%d", &id); err != nil {
		t.Fatal(err)
	}
	return id
}
