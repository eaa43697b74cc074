package machine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// sequential is code that calls activities one after the other, and the history that it makes.
type sequential struct {
	m      *machine.Machine
	events []schemas.Event
	fed    int // of the events
}

func newSequential() *sequential {
	s := &sequential{m: machine.New(func(m *machine.Machine, _ *schemas.WorkflowStarted) func() schemas.Decision {
		for {
			f := m.Schedule(m.Root(), &schemas.ScheduleActivity{ActivityType: "a"})
			m.Wait("a", f)
			if m.Root().Err() != nil {
				return func() schemas.Decision { return schemas.Decision{} }
			}
		}
	}, schemas.Execution{WorkflowID: "w", Run: "r"})}
	s.add(&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{})
	return s
}

func (s *sequential) add(all ...schemas.Attributes) {
	for _, a := range all {
		n := len(s.events) + 1
		s.events = append(s.events, schemas.Event{ID: int64(n), Time: schemas.Timestamp(n), Attributes: a})
	}
}

// turn makes one decision, and adds to the history what follows from it.
func (s *sequential) turn(b *testing.B) {
	for _, e := range s.events[s.fed:] {
		if err := s.m.Add(e); err != nil {
			b.Fatal(err)
		}
	}
	s.fed = len(s.events)
	started := int64(len(s.events))
	if _, _, err := s.m.Decide(machine.Live{Context: b.Context(), Started: started, At: schemas.Timestamp(started)}); err != nil {
		b.Fatal(err)
	}
	s.add(&schemas.DeciderCompleted{ScheduledEventID: started - 1, StartedEventID: started},
		&schemas.ActivityScheduled{ActivityID: fmt.Sprint("a#", started/6+1), ActivityType: "a", DeciderCompletedEventID: started + 1},
		&schemas.ActivityStarted{ScheduledEventID: started + 2, Attempt: 1},
		&schemas.ActivitySuccess{ScheduledEventID: started + 2, StartedEventID: started + 3, Result: schemas.Payload(`"ok"`)},
		&schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: started + 5})
}

func (s *sequential) until(b *testing.B, events int) {
	for len(s.events) < events {
		s.turn(b)
	}
}

func (s *sequential) close(b *testing.B) {
	if err := s.m.Close(); err != nil {
		b.Fatal(err)
	}
}

// A decision of a run that is in memory.
func BenchmarkWarmDecision(b *testing.B) {
	for _, events := range []int{100, 10_000} {
		b.Run(fmt.Sprint(events, "-events"), func(b *testing.B) {
			s := newSequential()
			defer s.close(b)
			s.until(b, events)
			for b.Loop() {
				s.turn(b)
			}
		})
	}
}

// A run that is not in memory, from 10,000 events.
func BenchmarkRebuild(b *testing.B) {
	old := newSequential()
	old.until(b, 10_000)
	old.close(b)
	for b.Loop() {
		s := newSequential()
		s.events = old.events
		s.turn(b)
		s.close(b)
	}
}

// Bytes of a run that is kept after its fourth activity, and the time until it is there.
func BenchmarkKeptRun(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all []*sequential
	for b.Loop() {
		s := newSequential()
		s.until(b, 27)
		s.events = nil // not needed beside a run that is in memory
		all = append(all, s)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := float64(len(all))
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "heap-B/run")
	b.ReportMetric(float64(after.StackInuse-before.StackInuse)/n, "stack-B/run")
	for _, s := range all {
		s.close(b)
	}
}
