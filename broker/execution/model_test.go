package execution

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/droverhq/drover/schemas"
)

// model is a dumb idea of where a run stands with its decider. It looks at no DeciderScheduled and keeps no ids: it reads
// the rest of the history from its beginning, over and over.
type model struct {
	attempts int
	types    []schemas.EventType // all events but DeciderScheduled
	never    map[int]bool        // which
	parked   map[int]bool        // which WorkflowPaused ended the patience with a decider
	ids, of  []int64             // of the events in types, and of the decisions that they carry out or refuse
	misfits  map[int]bool        // which DeciderFailed are of code that does not fit the history
	again    map[int]bool        // which DeciderCompleted ask for another decision
	undone   map[int]bool        // which DeciderFailed were answers of which nothing stands
	refused  map[int]bool        // of which DeciderCompleted something was refused
	carried  map[int]bool        // of which something was carried out
	tell     map[int64]bool      // which events ask to be told when it was done
	told     map[int]bool        // which are the answers to these
}

func (m *model) see(e schemas.Event) {
	if m.never == nil {
		m.never, m.parked, m.refused, m.carried = map[int]bool{}, map[int]bool{}, map[int]bool{}, map[int]bool{}
		m.undone, m.again, m.misfits = map[int]bool{}, map[int]bool{}, map[int]bool{}
		m.tell, m.told = map[int64]bool{}, map[int]bool{}
	}
	v := reflect.ValueOf(e.Attributes).Elem()
	if f := v.FieldByName("Tell"); f.IsValid() {
		m.tell[e.ID] = f.Bool()
	}
	switch e.Type() {
	case schemas.EventChildStarted, schemas.EventExternalSignaled, schemas.EventExternalCancelRequested:
		m.told[len(m.types)] = m.tell[v.FieldByName("ScheduledEventID").Int()]
	}
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
		return
	case *schemas.DeciderTimedOut:
		m.never[len(m.types)] = a.TimeoutType == schemas.TimeoutScheduleToStart
	case *schemas.DeciderCompleted:
		m.again[len(m.types)] = a.Again
	case *schemas.DeciderFailed:
		m.undone[len(m.types)] = a.Cause == schemas.CauseUnhandledDecision
		m.misfits[len(m.types)] = a.Cause == schemas.CauseNonDeterministic
	case *schemas.WorkflowPaused:
		m.parked[len(m.types)] = a.Cause == schemas.CauseDeciderAttempts
	}
	if i := slices.Index(m.ids, blockOf(e)); i >= 0 && blockOf(e) != 0 {
		if strings.HasSuffix(string(e.Type()), "Failed") || strings.HasSuffix(string(e.Type()), "Refused") {
			a, closes := e.Attributes.(*schemas.WorkflowCloseFailed)
			m.refused[i] = m.refused[i] || !closes || a.Cause != schemas.CauseUnhandledDecision
		} else {
			m.carried[i] = true
		}
	}
	m.types, m.ids, m.of = append(m.types, e.Type()), append(m.ids, e.ID), append(m.of, blockOf(e))
}

// blockOf is the decision that an event carries out or refuses at once; 0 if it does neither.
func blockOf(e schemas.Event) int64 {
	v := reflect.ValueOf(e.Attributes).Elem()
	if f := v.FieldByName("ScheduledEventID"); f.IsValid() && f.Int() != 0 && e.Type() != schemas.EventActivityCancelRequested && e.Type() != schemas.EventTimerCanceled {
		return 0 // an answer
	}
	if f := v.FieldByName("DeciderCompletedEventID"); f.IsValid() && !e.Type().Closes() && e.Type() != schemas.EventDeciderScheduled {
		return f.Int()
	}
	return 0
}

// pending: something woke the decider after its last start, or it asked for another decision, while the run was not paused.
func (m *model) pending() bool {
	for i := len(m.types) - 1; i >= 0; i-- {
		if m.types[i] == schemas.EventDeciderStarted {
			return false
		}
		if (m.types[i].Wakes() || m.told[i] || m.again[i]) && !m.pausedAt(i) && !m.parkedLater(i) { // parked: instead of asking again
			return true
		}
	}
	return false
}

// parkedLater tells whether the patience with the decider ended with an event, or with the last refusal of the same decision.
func (m *model) parkedLater(i int) bool {
	of := m.of[i]
	if m.again[i] {
		of = m.ids[i]
	}
	for i++; of != 0 && i < len(m.of) && m.of[i] == of; {
		i++
	}
	return m.parked[i]
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

// pausedAt tells whether the run was paused right after an event.
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

// failures counts the failures, timeouts and decisions of which everything was refused, since the last other answer or resume.
func (m *model) failures() (n int) {
	for i := len(m.types) - 1; i >= 0; i-- {
		switch m.types[i] {
		case schemas.EventDeciderCompleted:
			if !m.refused[i] || m.carried[i] {
				return n
			}
			n++
		case schemas.EventWorkflowResumed:
			return n
		case schemas.EventDeciderFailed:
			if m.undone[i] {
				return n
			}
			n++
		case schemas.EventDeciderTimedOut:
			if !m.never[i] {
				n++
			}
		}
	}
	return n
}

// mismatches counts the failures in a row of code that does not fit the history.
func (m *model) mismatches() (n int) {
	for i := len(m.types) - 1; i >= 0; i-- {
		switch m.types[i] {
		case schemas.EventDeciderCompleted, schemas.EventWorkflowResumed:
			return n
		case schemas.EventDeciderFailed, schemas.EventDeciderTimedOut:
			if !m.misfits[i] && !m.never[i] {
				return n
			}
			if m.misfits[i] {
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
	case s.Decision.Mismatches != m.mismatches():
		return fmt.Errorf("%d mismatches, the model counts %d", s.Decision.Mismatches, m.mismatches())
	case !closed && !paused && m.mismatches() >= 3:
		return fmt.Errorf("%d mismatches in a row and not parked", m.mismatches())
	case !closed && !paused && m.failures() >= m.attempts:
		return fmt.Errorf("%d failures in a row and not parked; want at most %d", m.failures(), m.attempts-1)
	}
	return nil
}
