package machine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// happening is something that happens to a run, by names that do not depend on its history: a
// signal, the end of an activity, or that of a timer.
type happening struct {
	signal, activity, timer string
	fails                   bool
}

// grouped is a run of a program whose decisions are made after groups of happenings.
type grouped struct {
	t      *rapid.T
	p      *play
	events []schemas.Event
	read   int
	at     time.Duration
	open   map[string]int64 // what was scheduled, by kind and name
	closed bool
}

func newGrouped(t *rapid.T, all []step) *grouped {
	g := &grouped{t: t, p: newPlay(all), open: map[string]int64{}}
	g.add(&schemas.WorkflowStarted{WorkflowType: "order"})
	g.decide()
	return g
}

func (g *grouped) add(a schemas.Attributes) int64 {
	id := int64(len(g.events) + 1)
	g.events = append(g.events, schemas.Event{ID: id, Time: schemas.At(time.Unix(0, 0).Add(g.at)), Attributes: a})
	return id
}

// happens lets something happen, a second after what was before.
func (g *grouped) happens(h happening) {
	g.at += time.Second
	switch {
	case h.signal != "":
		g.add(&schemas.Signal{SignalName: "s", Input: schemas.Payload(h.signal)})
	case h.timer != "":
		id := g.take("timer " + h.timer)
		g.add(&schemas.TimerExpired{TimerID: h.timer, ScheduledEventID: id})
	case h.fails:
		g.add(&schemas.ActivityFailed{ScheduledEventID: g.take("activity " + h.activity), Reason: "no"})
	default:
		g.add(&schemas.ActivitySuccess{ScheduledEventID: g.take("activity " + h.activity), Result: schemas.Payload(h.activity)})
	}
}

// take takes something that is open, which it is in every grouping that decides as often.
func (g *grouped) take(key string) int64 {
	id, ok := g.open[key]
	if !ok {
		g.t.Fatalf("%s is not open", key)
	}
	delete(g.open, key)
	return id
}

// decide makes the decision of what has happened.
func (g *grouped) decide() {
	scheduled := g.add(&schemas.DeciderScheduled{})
	started := g.add(&schemas.DeciderStarted{ScheduledEventID: scheduled})
	decisions, _ := decide(g.t, g.p, g.events[g.read:], machine.Live{
		Context: context.Background(), Started: started, At: g.events[started-1].Time, Rest: func(do func()) { do() },
	})
	g.read = len(g.events)
	completed := g.add(&schemas.DeciderCompleted{ScheduledEventID: scheduled, StartedEventID: started})
	for _, d := range decisions {
		switch a := d.Attributes.(type) {
		case *schemas.ScheduleActivity:
			g.open["activity "+a.ActivityID] = g.add(&schemas.ActivityScheduled{
				ActivityID: a.ActivityID, ActivityType: a.ActivityType, DeciderCompletedEventID: completed,
			})
		case *schemas.ScheduleTimer:
			g.open["timer "+a.TimerID] = g.add(&schemas.TimerScheduled{TimerID: a.TimerID, DeciderCompletedEventID: completed})
		case *schemas.RecordMarker:
			g.add(&schemas.Marker{MarkerName: a.MarkerName, Details: a.Details, DeciderCompletedEventID: completed})
		case *schemas.CompleteWorkflow:
			g.add(&schemas.WorkflowSuccess{Result: a.Result, DeciderCompletedEventID: completed})
			g.closed = true
		default:
			g.t.Fatalf("decided %s", d.Type())
		}
	}
}

// next draws something that can happen.
func (g *grouped) next(n int) happening {
	all := []happening{{signal: fmt.Sprint(n)}}
	for _, key := range slices.Sorted(maps.Keys(g.open)) {
		var kind, name string
		if _, err := fmt.Sscan(key, &kind, &name); err != nil {
			g.t.Fatal(err)
		}
		if kind == "timer" {
			all = append(all, happening{timer: name})
			continue
		}
		all = append(all, happening{activity: name}, happening{activity: name, fails: true})
	}
	return rapid.SampledFrom(all).Draw(g.t, "happens")
}

// It makes no difference to a program how what happens falls into decisions: it sees the same if
// some of it is decided upon together, or each by itself. Left out are steps whose answer stands in
// the block of the decision, after all that it was decided upon: it is a cancellation, a message, a
// child, a lock or a Do that code sees in another place of another history. So are looks that do not
// wait: they find what has come up to the decision.
func TestGroupingMakesNoDifference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := program(t, 2, 7, 8, 9, 10, 11, 14, 15, 16, 19)
		together, apart := newGrouped(t, all), newGrouped(t, all)
		defer func() { _, _ = together.p.m.Close(), apart.p.m.Close() }()
		for n := 0; n < 12 && !together.closed; {
			for range rapid.IntRange(1, 4).Draw(t, "together") {
				n++
				h := together.next(n)
				together.happens(h)
				if apart.closed { // within what is decided upon together
					continue
				}
				apart.happens(h)
				apart.decide()
			}
			together.decide()
			if together.closed != apart.closed || !slices.Equal(together.p.seen, apart.p.seen) {
				t.Fatalf("together, closed %v: %q\neach by itself, closed %v: %q",
					together.closed, together.p.seen, apart.closed, apart.p.seen)
			}
		}
		for _, g := range []*grouped{together, apart} {
			last := newPlay(all)
			err := add(last, g.events)
			if err == nil {
				err = last.m.Flush()
			}
			if _ = last.m.Close(); err != nil || !slices.Equal(last.seen, g.p.seen) {
				t.Fatalf("replayed: %v, seen %q, want %q", err, last.seen, g.p.seen)
			}
		}
	})
}
