package execution

import (
	"iter"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// RequestID is what a repeat of a request is known by. There are two kinds: those of signals, and
// of what other workflows have sent; and those of operators' requests.
type RequestID struct {
	Signal bool
	ID     string
}

// SameStart tells whether a request asks for the start that has begun a run.
func SameStart(s *schemas.WorkflowStarted, q *schemas.StartRequest) bool {
	return s.Run == q.Run || s.RequestID != "" && s.RequestID == q.RequestID
}

// RequestOf returns what a repeat of a message is known by. Its ID is empty if that is nothing.
func RequestOf(m Message) RequestID {
	switch m := m.(type) {
	case Signal:
		return RequestID{Signal: true, ID: sentID(m)}
	case Start:
		if m.Request.Signal != nil {
			return RequestID{Signal: true, ID: sentID(StartSignalOf(m.Request))}
		}
	case Cancel:
		if o := m.Request.Origin; isErrand(o) {
			return RequestID{Signal: true, ID: externalSignalID(o.Execution.Run, o.ScheduledEventID)}
		}
		return RequestID{ID: m.Request.RequestID}
	case Pause:
		return RequestID{ID: m.Request.RequestID}
	case Resume:
		return RequestID{ID: m.Request.RequestID}
	case Hold:
		return RequestID{ID: m.Request.RequestID}
	case Release:
		return RequestID{ID: m.Request.RequestID}
	case BreakLock:
		return RequestID{ID: m.Request.RequestID}
	}
	return RequestID{}
}

// RequestsIn are the ids that an event notes: none for most.
func RequestsIn(a schemas.Attributes) iter.Seq[RequestID] {
	return func(yield func(RequestID) bool) {
		signal, request := "", ""
		switch a := a.(type) {
		case *schemas.Signal:
			signal = signalID(a)
		case *schemas.WorkflowCancelRequested:
			signal, request = cancelID(a), a.RequestID
		case *schemas.WorkflowPaused:
			request = a.RequestID
		case *schemas.WorkflowResumed:
			request = a.RequestID
		case *schemas.ContinuationHeld:
			request = a.RequestID
		case *schemas.ContinuationReleased:
			request = a.RequestID
		case *schemas.LockBroken:
			request = a.RequestID
		}
		if signal == "" || yield(RequestID{Signal: true, ID: signal}) {
			_ = request == "" || yield(RequestID{ID: request})
		}
	}
}

// Sent tells whether another workflow has sent a message, which waits for an answer.
func Sent(m Message) bool {
	switch m := m.(type) {
	case Signal:
		return m.External != nil
	case Cancel:
		return isErrand(m.Request.Origin)
	}
	return false
}

// Remembers tells whether an id is among the latest ones of the chain.
func (s *State) Remembers(id RequestID) bool { return slices.Contains(s.ids(id), id.ID) }

// Forgets tells whether the state has as many ids of a kind as it remembers: it may have forgotten
// older ones.
func (s *State) Forgets(id RequestID) bool { return len(s.ids(id)) >= id.Remembered() }

func (s *State) ids(id RequestID) []string {
	if id.Signal {
		return s.SignalIDs
	}
	return s.RequestIDs
}

// Remembered is how many of the latest ids of its kind a state remembers.
func (id RequestID) Remembered() int {
	if id.Signal {
		return rememberedSignals
	}
	return rememberedRequests
}

// Confirm returns the answer to a message that the chain has had before, for another workflow that
// has sent it.
func (s *State) Confirm(m Message) []Effect {
	st := step{State: s}
	switch m := m.(type) {
	case Signal:
		if m.External != nil {
			st.answer(m.External, "")
		}
	case Cancel:
		st.answerRequest(m.Request.Origin, "")
	}
	return st.effects
}
