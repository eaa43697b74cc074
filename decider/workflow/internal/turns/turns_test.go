package turns_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/decider/workflow/internal/turns"
	"github.com/droverhq/drover/schemas"
)

// story writes a history and notes the turns that it has.
type story struct {
	t       *rapid.T
	events  []schemas.Event
	waiting []int64 // for the next turn
	want    []string
}

func (s *story) add(a schemas.Attributes) int64 {
	id := int64(len(s.events) + 1)
	s.events = append(s.events, schemas.Event{ID: id, Time: schemas.Timestamp(10 * id), Attributes: a})
	return id
}

// happens adds some events that no decision has caused.
func (s *story) happens() (ids []int64) {
	for range rapid.IntRange(0, 3).Draw(s.t, "events") {
		ids = append(ids, s.add(&schemas.Signal{SignalName: "s"}))
	}
	return ids
}

// asked adds the beginning of a decision, and tells what it has to look at.
func (s *story) asked() (scheduled, started int64) {
	scheduled = s.add(&schemas.DeciderScheduled{})
	s.waiting = append(s.waiting, s.happens()...)
	return scheduled, s.add(&schemas.DeciderStarted{ScheduledEventID: scheduled})
}

// decides adds a decision with what happened while it was made, and its block.
func (s *story) decides() {
	scheduled, started := s.asked()
	turn := s.waiting
	s.waiting = s.happens()
	completed := s.add(&schemas.DeciderCompleted{ScheduledEventID: scheduled, StartedEventID: started})
	var block []int64
	for range rapid.IntRange(0, 3).Draw(s.t, "block") {
		id := s.add(rapid.SampledFrom([]schemas.Attributes{
			&schemas.ActivityScheduled{DeciderCompletedEventID: completed},
			&schemas.TimerCancelFailed{DeciderCompletedEventID: completed},
			&schemas.Marker{DeciderCompletedEventID: completed},
		}).Draw(s.t, "decision"))
		block, s.waiting = append(block, id), append(s.waiting, id)
		if rapid.Bool().Draw(s.t, "ends at once") {
			s.waiting = append(s.waiting, s.add(&schemas.ActivityCanceled{}))
		}
	}
	s.want = append(s.want, line(turn, started, completed, block))
}

// fails adds a decision that fails or times out: what it had seen waits for the next one.
func (s *story) fails() {
	scheduled, started := s.asked()
	s.waiting = append(s.waiting, s.happens()...)
	if rapid.Bool().Draw(s.t, "times out") {
		s.add(&schemas.DeciderTimedOut{ScheduledEventID: scheduled, StartedEventID: started})
	} else {
		s.add(&schemas.DeciderFailed{ScheduledEventID: scheduled, StartedEventID: started})
	}
}

// line is a turn in words. The time of an event is ten times its id.
func line(events []int64, started, completed int64, block []int64) string {
	return fmt.Sprintln(events, "started", started, "at", 10*started, "completed", completed, block)
}

func lineOf(t *turns.Turn) string {
	return fmt.Sprintln(ids(t.Events), "started", t.Started, "at", int64(t.At), "completed", t.Completed,
		ids(t.Block))
}

func ids(events []schemas.Event) (all []int64) {
	for _, e := range events {
		all = append(all, e.ID)
	}
	return all
}

// A history is cut into the turns that made it, whatever failed in between, and a decision that is
// being made has what is left. It makes no difference in which pieces the events come.
// sdk-go#988, #1670.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &story{t: t}
		s.waiting = append(s.waiting, s.add(&schemas.WorkflowStarted{}))
		var c turns.Cutter
		var got []string
		read := 0
		for range rapid.IntRange(0, 6).Draw(t, "decisions") {
			if rapid.Bool().Draw(t, "fails") {
				s.fails()
			} else {
				s.decides()
			}
			if rapid.Bool().Draw(t, "page ends") {
				read = addAll(&c, s.events, read, &got)
			}
		}
		s.waiting = append(s.waiting, s.happens()...)
		_, started := s.asked()
		addAll(&c, s.events, read, &got)
		if last := c.Flush(); last != nil {
			t.Fatalf("a turn is left after a decision that has started: %s", lineOf(last))
		}
		live := c.Live(started, schemas.Timestamp(10*started))
		s.want = append(s.want, line(s.waiting, started, 0, nil))
		got = append(got, lineOf(live))
		if fmt.Sprint(got) != fmt.Sprint(s.want) {
			t.Fatalf("the history\n%s\nhas the turns\n%v\nwant\n%v", text(s.events), got, s.want)
		}
	})
}

func addAll(c *turns.Cutter, events []schemas.Event, from int, got *[]string) int {
	for _, e := range events[from:] {
		if turn := c.Add(e); turn != nil {
			*got = append(*got, lineOf(turn))
		}
	}
	return len(events)
}

// The last turn of a closed run is complete without another decision.
func TestLastTurn(t *testing.T) {
	var c turns.Cutter
	for n, a := range []schemas.Attributes{
		&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3},
		&schemas.WorkflowSuccess{DeciderCompletedEventID: 4},
	} {
		if turn := c.Add(schemas.Event{ID: int64(n + 1), Time: schemas.Timestamp(10 * (n + 1)), Attributes: a}); turn != nil {
			t.Fatalf("a turn is complete too early: %s", lineOf(turn))
		}
	}
	if turn := c.Flush(); turn == nil || lineOf(turn) != line([]int64{1}, 3, 4, []int64{5}) {
		t.Errorf("got %+v", turn)
	}
}

func text(events []schemas.Event) (all string) {
	for _, e := range events {
		all += fmt.Sprintf("%d %s\n", e.ID, e.Type())
	}
	return all
}
