package stats_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/internal/tally"
	"github.com/droverhq/drover/schemas"
)

// history lets events happen one after the other, each a second after the one before.
func history(s *stats.Stats, run string, events ...schemas.Attributes) {
	state := execution.New("w", run)
	for i, a := range events {
		e := schemas.Event{ID: int64(i + 1), Time: schemas.Timestamp(i+1) * 1e9, Attributes: a}
		s.Happens(state, e)
		state.Apply(e)
	}
}

func check(t *testing.T, what string, h *tally.Histogram, count uint64, seconds float64) {
	t.Helper()
	if got := h.Read(); got.Count != count || got.Sum != seconds {
		t.Errorf("%s: got %d of %v s, want %d of %v s", what, got.Count, got.Sum, count, seconds)
	}
}

func TestEvents(t *testing.T) {
	var s stats.Stats
	history(&s, "r1",
		&schemas.WorkflowStarted{WorkflowID: "w", Run: "r1", WorkflowType: "order"},
		&schemas.DeciderScheduled{},
		&schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderFailed{ScheduledEventID: 2, StartedEventID: 3},
		&schemas.DeciderScheduled{},
		&schemas.DeciderStarted{ScheduledEventID: 5},
		&schemas.DeciderCompleted{ScheduledEventID: 5, StartedEventID: 6},
		&schemas.ActivityScheduled{ActivityID: "a", ActivityType: "pay", List: "bank"},
		&schemas.ActivityScheduled{ActivityID: "b", ActivityType: "pay", List: "bank"},
		&schemas.LockRequested{Lock: "l"},
		&schemas.ActivityStarted{ScheduledEventID: 8, Attempt: 1}, // after 3 s
		&schemas.ActivityRetryScheduled{ScheduledEventID: 8, StartedEventID: 11, Attempt: 1, NextTime: 13e9},
		&schemas.ActivityStarted{ScheduledEventID: 8, Attempt: 2}, // at once
		&schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: 10},
		&schemas.ActivityInterrupted{ScheduledEventID: 8, StartedEventID: 13, Attempt: 2},
		&schemas.ActivityScheduledTimeout{ScheduledEventID: 9},
		&schemas.ActivityStarted{ScheduledEventID: 8, Attempt: 3}, // 9 s after it was scheduled
		&schemas.Signal{SignalName: "go"},
		&schemas.Signal{SignalName: "copied", OriginRun: "r0"},
		&schemas.ActivitySuccess{ScheduledEventID: 8, StartedEventID: 17}, // after 3 s
		&schemas.DeciderScheduled{},
		&schemas.DeciderTimedOut{ScheduledEventID: 21},
		&schemas.WorkflowTerminated{}, // after 22 s
	)
	history(&s, "r2", &schemas.WorkflowStarted{WorkflowID: "w", Run: "r2", WorkflowType: "order"})

	typ := s.Types.Of("order")
	if typ.Started.Load() != 2 {
		t.Errorf("started: %d, want 2", typ.Started.Load())
	}
	for i, status := range stats.Statuses {
		if want := int64(0); typ.Closed[i].Load() != want && status != schemas.StatusTerminated {
			t.Errorf("%s: got %d, want none", status, typ.Closed[i].Load())
		} else if status == schemas.StatusTerminated && typ.Closed[i].Load() != 1 {
			t.Errorf("%s: got %d, want 1", status, typ.Closed[i].Load())
		}
	}
	check(t, "duration", &typ.Took, 1, 22)
	for i, want := range []int64{1, 1, 0, 1} {
		if got := typ.Decisions[i].Load(); got != want {
			t.Errorf("decisions %s: got %d, want %d", stats.DecisionOutcomes[i], got, want)
		}
	}
	check(t, "decision wait", &typ.Wait, 2, 2)
	check(t, "deciding", &typ.Deciding, 2, 2)
	act := s.Activities.Of(stats.ListType{List: "bank", Type: "pay"})
	for i, want := range []int64{1, 0, 0, 0, 1} {
		if got := act.Outcomes[i].Load(); got != want {
			t.Errorf("activities %s: got %d, want %d", stats.ActivityOutcomes[i], got, want)
		}
	}
	check(t, "activity wait", &act.Wait, 3, 3+0+9)
	check(t, "activity duration", &act.Took, 1, 3)
	if act.Retries.Load() != 1 || act.Interrupted.Load() != 1 || s.Signals.Load() != 1 {
		t.Errorf("got %d retries, %d interrupted, %d signals; want one each", act.Retries.Load(),
			act.Interrupted.Load(), s.Signals.Load())
	}
	check(t, "lock", &s.LockWait, 1, 4)
}

func TestRequests(t *testing.T) {
	var s stats.Stats
	s.Asked("_INBOX.1", "start")
	s.Asked("_INBOX.1", "describe") // the owner has it from this very process
	s.Answered("_INBOX.1", &schemas.StartResponse{})
	s.Answered("_INBOX.1", &schemas.StartResponse{}) // again
	s.Asked("_INBOX.2", "start")
	s.Answered("_INBOX.2", &schemas.AckResponse{Error: schemas.Errorf(schemas.CodeNotFound, "no")})
	s.Asked("_INBOX.3", "start")
	s.Passed("_INBOX.3")
	s.Answered("_INBOX.3", &schemas.StartResponse{}) // by another process
	s.Asked("", "start")
	for code, want := range map[string]int64{"ok": 1, "not_found": 1} {
		if got := s.Requests.Of(stats.VerbCode{Verb: "start", Code: code}).Load(); got != want {
			t.Errorf("%s: got %d, want %d", code, got, want)
		}
	}
	if got := s.Answers.Of("start").Read().Count; got != 2 {
		t.Errorf("got %d answers, want 2", got)
	}
	for i := range 20_000 { // which nobody answers
		s.Asked(fmt.Sprint("_INBOX.x", i), "why")
	}
	s.Answered("_INBOX.x1", &schemas.AckResponse{})
	if got := s.Answers.Of("why").Read().Count; got != 1 {
		t.Errorf("got %d answers, want 1", got)
	}
}

func TestOwnedAndRinging(t *testing.T) {
	var s stats.Stats
	_, first := s.Own(1)
	_, second := s.Own(1) // the next term, before the former has ended
	first()
	if got := s.Owned(); len(got) != 1 || got[0].Number != 1 {
		t.Errorf("got %v, want partition 1", got)
	}
	if second(); len(s.Owned()) != 0 {
		t.Error("a partition that is given back is still owned")
	}
	done := s.Ring(2, func() int { return 7 })
	if got := s.Alarms.Ringing(); len(got) != 1 || got[0].Pending() != 7 {
		t.Errorf("got %v, want partition 2", got)
	}
	if done(); len(s.Alarms.Ringing()) != 0 {
		t.Error("alarms that are given back are still rung")
	}
}

// Roles without a Stats count nothing, and need not look.
func TestNone(t *testing.T) {
	var s *stats.Stats
	p, disown := s.Own(1)
	p.Behind.Store(1)
	disown()
	s.Ring(1, nil)()
	s.Rang(time.Second)
	s.Took(stats.TakenNew, time.Second)
	s.Buried("x", true)
	s.Committed(1, 1, 1)
	s.RecordRefused(stats.RefusedFull)
	s.Asked("a", "b")
	s.Passed("a")
	s.Answered("a", nil)
}

// What a step of a run, its record and its request cost to count.
func BenchmarkCount(b *testing.B) {
	var s stats.Stats
	state := execution.New("w", "r")
	start := &schemas.WorkflowStarted{WorkflowID: "w", Run: "r", WorkflowType: "order"}
	state.Apply(schemas.Event{ID: 1, Time: 1e9, Attributes: start})
	answer := &schemas.StartResponse{}
	b.Run("event", func(b *testing.B) {
		e := schemas.Event{ID: 2, Time: 2e9, Attributes: &schemas.DeciderCompleted{StartedEventID: 1}}
		b.ReportAllocs()
		for b.Loop() {
			s.Happens(state, e)
		}
	})
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sent := time.Now()
			s.Committed(time.Since(sent), 3, 500)
		}
	})
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Asked("_INBOX.1", "start")
			s.Answered("_INBOX.1", answer)
		}
	})
}
