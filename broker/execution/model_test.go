package execution

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// model is a dumb idea of where a run stands with its decider. It looks at no DeciderScheduled and keeps no ids: it reads
// the rest of the history from its beginning, over and over.
type model struct {
	attempts int
	types    []schemas.EventType // all events but DeciderScheduled
	never    map[int]bool        // which
	parked   map[int]bool        // which WorkflowPaused ended the patience with a decider
}

func (m *model) see(e schemas.Event) {
	if m.never == nil {
		m.never, m.parked = map[int]bool{}, map[int]bool{}
	}
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
		return
	case *schemas.DeciderTimedOut:
		m.never[len(m.types)] = a.TimeoutType == schemas.TimeoutScheduleToStart
	case *schemas.WorkflowPaused:
		m.parked[len(m.types)] = a.Cause == schemas.CauseDeciderAttempts
	}
	m.types = append(m.types, e.Type())
}

// pending: something woke the decider behind its last start, while the run was not paused.
func (m *model) pending() bool {
	for i := len(m.types) - 1; i >= 0; i-- {
		if m.types[i] == schemas.EventDeciderStarted {
			return false
		}
		if m.types[i].Wakes() && !m.pausedAt(i) && !m.parked[i+1] { // parked: instead of asking again
			return true
		}
	}
	return false
}

// running: the last start has no end yet.
func (m *model) running() bool {
	for i := len(m.types) - 1; i >= 0; i-- {
		switch m.types[i] {
		case schemas.EventDeciderStarted:
			return true
		case schemas.EventDeciderCompleted, schemas.EventDeciderFailed:
			return false
		case schemas.EventDeciderTimedOut:
			if !m.never[i] {
				return false
			}
		}
	}
	return false
}

// pausedAt tells whether the run was paused right behind an event.
func (m *model) pausedAt(i int) bool {
	for ; i >= 0; i-- {
		switch m.types[i] {
		case schemas.EventWorkflowPaused:
			return true
		case schemas.EventWorkflowResumed:
			return false
		}
	}
	return false
}

// failures counts the failures and timeouts since the last completed decision or resume.
func (m *model) failures() (n int) {
	for i := len(m.types) - 1; i >= 0; i-- {
		switch m.types[i] {
		case schemas.EventDeciderCompleted, schemas.EventWorkflowResumed:
			return n
		case schemas.EventDeciderFailed:
			n++
		case schemas.EventDeciderTimedOut:
			if !m.never[i] {
				n++
			}
		}
	}
	return n
}

func (m *model) compare(s *State, c *Config) error {
	if len(m.types) == 0 {
		return nil
	}
	last := len(m.types) - 1
	closed := m.types[last].Closes()
	paused, pending, running := m.pausedAt(last), m.pending() && !closed, m.running() && !closed
	_, wanted := s.WantsDecider(c)
	switch {
	case s.Closed() != closed:
		return fmt.Errorf("closed is %v, the model says %v", s.Closed(), closed)
	case (s.Paused != nil) != paused:
		return fmt.Errorf("paused is %v, the model says %v", s.Paused != nil, paused)
	case (s.Decision.Scheduled != 0) != pending:
		return fmt.Errorf("pending is %v, the model says %v", s.Decision.Scheduled != 0, pending)
	case (s.Decision.Started != 0) != running:
		return fmt.Errorf("running is %v, the model says %v", s.Decision.Started != 0, running)
	case wanted != (running || pending && !paused):
		return fmt.Errorf("wanted is %v, the model says running %v, pending %v, paused %v", wanted, running, pending, paused)
	case s.Decision.Failures != m.failures():
		return fmt.Errorf("%d failures, the model counts %d", s.Decision.Failures, m.failures())
	case !closed && !paused && m.failures() >= m.attempts:
		return fmt.Errorf("%d failures in a row and not parked; want at most %d", m.failures(), m.attempts-1)
	}
	return nil
}
