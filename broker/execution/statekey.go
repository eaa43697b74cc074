package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/requirement"
)

// StateRequest is a request for a state key that has no answer. The key is not in the state:
// whoever performs the request reads and writes it, and tells the run.
//
// A key lock-NAME is a view of lock NAME. To read it is to ask who holds the lock. To set it is to
// try to take the lock for the run, without standing in line: then the run has a [Lock] that says
// so, and what holds for locks holds for it, over crashes too. To clear it is to break the lock, or
// to let go of it if the run holds it itself.
type StateRequest struct {
	EventID int64                   `json:"eventId"`
	Request *schemas.StateRequested `json:"request"`
	At      schemas.Timestamp       `json:"at"`
}

// Takes tells whether the request tries to take a lock, and which.
func (q *StateRequest) Takes() (lock string, ok bool) { return takes(q.Request) }

func takes(a *schemas.StateRequested) (lock string, ok bool) {
	if a.Decision != schemas.DecideSetState {
		return "", false
	}
	return schemas.StateLock(a.Key)
}

// OpenRequests returns the unanswered requests for state keys, in their order.
func (s *State) OpenRequests() []*StateRequest {
	return slices.SortedFunc(maps.Values(s.Requests),
		func(a, b *StateRequest) int { return cmp.Compare(a.EventID, b.EventID) })
}

func (s *State) openRequests() []Effect {
	var open []Effect
	for _, q := range s.OpenRequests() {
		if _, ok := q.Takes(); !ok { // its lock is open
			open = append(open, AskState{ScheduledID: q.EventID})
		}
	}
	return open
}

func (s *State) applyState(e schemas.Event) bool {
	switch a := e.Attributes.(type) {
	case *schemas.StateRequested:
		if s.Requests == nil {
			s.Requests = make(map[int64]*StateRequest)
		}
		s.Requests[e.ID] = &StateRequest{EventID: e.ID, Request: a, At: e.Time}
		if lock, ok := takes(a); ok && s.Locks[schemas.LockKey(a.Scope, lock)] == nil {
			s.addLock(&Lock{Lock: lock, Scope: a.Scope, Try: true, Run: s.Run, EventID: e.ID, Since: e.Time, By: e.ID})
		}
	case *schemas.StateRead:
		delete(s.Requests, a.ScheduledEventID)
	case *schemas.StateSet:
		s.endTry(a.ScheduledEventID)
	case *schemas.StateCleared:
		delete(s.Requests, a.ScheduledEventID)
	case *schemas.StateRefused:
		s.endTry(a.ScheduledEventID)
	default:
		return false
	}
	return true
}

// endTry forgets a request, and what it has tried to take.
func (s *State) endTry(id int64) {
	q := s.Requests[id]
	delete(s.Requests, id)
	if q == nil {
		return
	}
	if lock, ok := q.Takes(); ok {
		if l := s.Locks[schemas.LockKey(q.Request.Scope, lock)]; l != nil && l.Try &&
			l.EventID == id {
			delete(s.Locks, l.Key())
		}
	}
}

// dropRequests forgets all requests at the end of the run: nobody could be told any more.
func (s *State) dropRequests() {
	for id := range s.Requests {
		s.endTry(id)
	}
	s.Requests = nil
}

func (st *step) getState(a *schemas.GetState, completed int64) bool {
	q := &schemas.StateRequested{
		Decision: schemas.DecideGetState, Key: a.Key, Scope: a.Scope,
		DeciderCompletedEventID: completed,
	}
	if !st.mayAsk(q) {
		return false
	}
	st.do(AskState{ScheduledID: st.emit(q)})
	return true
}

func (st *step) setState(a *schemas.SetState, completed int64) bool {
	q := &schemas.StateRequested{
		Decision: schemas.DecideSetState, Key: a.Key, Scope: a.Scope, Value: a.Value,
		Require: a.Require, DeciderCompletedEventID: completed,
	}
	if !st.mayAsk(q) {
		return false
	}
	require, err := requirement.Parse(a.Require)
	if err != nil {
		return st.refuseState(q, schemas.CauseInvalidAttributes, "require: "+err.Error())
	}
	if lock, ok := schemas.StateLock(a.Key); ok {
		return st.takeLock(q, lock, require)
	}
	st.do(AskState{ScheduledID: st.emit(q)})
	return true
}

func (st *step) clearState(a *schemas.ClearState, completed int64) bool {
	q := &schemas.StateRequested{
		Decision: schemas.DecideClearState, Key: a.Key, Scope: a.Scope,
		DeciderCompletedEventID: completed,
	}
	if !st.mayAsk(q) {
		return false
	}
	lock, _ := schemas.StateLock(a.Key)
	l := st.Locks[schemas.LockKey(a.Scope, lock)]
	if lock == "" || l == nil || l.Waits() || l.Shared() {
		st.do(AskState{ScheduledID: st.emit(q)})
		return true
	}
	id := st.emit(q)
	st.emit(&schemas.LockReleased{
		Lock: l.Lock, Scope: l.Scope, Fence: l.Fence, DeciderCompletedEventID: completed,
	})
	st.leave(l)
	st.emit(&schemas.StateCleared{Key: a.Key, Scope: a.Scope, ScheduledEventID: id})
	return false // the decider is told, as it is of every answer
}

// mayAsk refuses a request that breaks a rule.
func (st *step) mayAsk(q *schemas.StateRequested) bool {
	err := schemas.ValidateState(q.Key, q.Scope)
	if lock, ok := schemas.StateLock(q.Key); err == nil && ok {
		err = schemas.ValidateLock(lock, q.Scope)
	}
	switch {
	case err != nil:
		return st.refuseState(q, schemas.CauseInvalidAttributes, err.Error())
	case max(len(q.Value), len(q.Require)) > schemas.MaxStateValue:
		return st.refuseState(q, schemas.CauseInvalidAttributes, fmt.Sprintf(
			"value, require: %d bytes; a state key takes %d: keep what is larger elsewhere, and its name here",
			max(len(q.Value), len(q.Require)), schemas.MaxStateValue))
	case len(st.Requests) >= st.c.OpenStates:
		return st.refuseState(q, schemas.CauseOpenStatesLimit,
			limitDetails("requests for state keys", st.c.OpenStates))
	case st.full():
		return st.refuseState(q, schemas.CauseEventLimitExceeded, st.fullDetails())
	}
	if _, isRef := q.Value.Ref(); isRef {
		return st.refuseState(q, schemas.CauseInvalidAttributes,
			"value: it is a reference to a large payload, which belongs to this run alone: give a small value")
	}
	return true
}

func (st *step) refuseState(q *schemas.StateRequested, cause schemas.Cause, details string) bool {
	st.emit(&schemas.StateRefused{
		Key: q.Key, Scope: q.Scope, Cause: cause, Details: details,
		DeciderCompletedEventID: q.DeciderCompletedEventID,
	})
	return false
}

// refuseAsked refuses a request that stands in the history.
func (st *step) refuseAsked(
	q *StateRequest, cause schemas.Cause, value schemas.Payload, details string,
) {
	st.emit(&schemas.StateRefused{
		Key: q.Request.Key, Scope: q.Request.Scope, Cause: cause, Value: value, Details: details,
		ScheduledEventID:        q.EventID,
		DeciderCompletedEventID: q.Request.DeciderCompletedEventID,
	})
}

// takeLock tries to take a lock for the run by its state key. The key of a free lock is absent, and
// that of one that the run holds has the id of its workflow.
func (st *step) takeLock(
	q *schemas.StateRequested, lock string, require *requirement.Requirement,
) bool {
	held := st.Locks[schemas.LockKey(q.Scope, lock)]
	switch {
	case !st.isOwn(q.Value):
		return st.refuseState(q, schemas.CauseInvalidAttributes, fmt.Sprintf(
			"value: the key %s shows who holds lock %q, and a run can take it only for "+
				"itself: set it to the workflow id, %q", q.Key, lock, st.WorkflowID))
	case held != nil && held.Waits():
		return st.refuseState(q, schemas.CauseLockRequested, fmt.Sprintf(
			"event %d has asked for the lock, and has no answer: wait for it first", held.EventID))
	case held == nil && st.retentionDisabled():
		return st.refuseState(q, schemas.CauseInvalidAttributes, lockUnkept)
	case held == nil && len(st.Locks) >= st.c.OpenLocks:
		return st.refuseState(q, schemas.CauseOpenLocksLimit, fmt.Sprintf(
			"the run holds or waits for %d locks, and no run may have more: release one",
			st.c.OpenLocks))
	}
	own, _ := schemas.JSONPayload(st.WorkflowID) // a text is always JSON
	id := st.emit(q)
	switch {
	case held != nil && require.Holds(own, true):
		st.emit(&schemas.StateSet{
			Key: q.Key, Scope: q.Scope, Revision: held.Fence, ScheduledEventID: id,
		})
	case held != nil:
		st.refuseAsked(st.Requests[id], schemas.CauseRequirement, own, "")
	case !require.Holds(nil, false):
		st.refuseAsked(st.Requests[id], schemas.CauseRequirement, nil,
			"require: this run does not hold the lock, and what is required does not hold for a "+
				"free one: there is nothing to take")
	default:
		st.do(EnterLock{
			Key: schemas.LockKey(q.Scope, lock), Asked: Asked{Run: st.Run, EventID: id}, By: id,
		})
		return true
	}
	return false // the decider is told, as it is of every answer
}

// isOwn tells whether a value names the run: by the id of its workflow, or its own.
func (st *step) isOwn(p schemas.Payload) bool {
	text := string(p)
	if p.Decode(&text) != nil {
		text = string(p)
	}
	return text == st.WorkflowID || text == st.Run
}

// answered notes what became of a request. Word of it may come twice, and late.
func (st *step) answered(m Answered) {
	q := st.Requests[m.Asked.EventID]
	if m.Asked.Run != st.Run || q == nil {
		return
	}
	if _, ok := q.Takes(); ok {
		return // its lock is what is told
	}
	a := q.Request
	switch {
	case m.Cause != "":
		st.refuseAsked(q, m.Cause, m.Value, m.Details)
	case a.Decision == schemas.DecideGetState:
		st.emit(&schemas.StateRead{
			Key: a.Key, Scope: a.Scope, Value: m.Value, Revision: m.Revision,
			ScheduledEventID: q.EventID,
		})
	case a.Decision == schemas.DecideSetState:
		st.emit(&schemas.StateSet{
			Key: a.Key, Scope: a.Scope, Revision: m.Revision, ScheduledEventID: q.EventID,
		})
	default:
		st.emit(&schemas.StateCleared{Key: a.Key, Scope: a.Scope, ScheduledEventID: q.EventID})
	}
	st.wake()
}
