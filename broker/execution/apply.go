package execution

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// Apply folds one event into the state. It trusts the event: it stands in a history, or Step just
// made it.
func (s *State) Apply(e schemas.Event) {
	s.LastID, s.LastTime = e.ID, max(e.Time, s.LastTime)
	if status, closes := schemas.StatusOf(e.Type()); closes {
		closing := e // e itself stays off the heap: most events close nothing
		s.Status, s.Close = status, &closing
		s.Decision.Scheduled, s.Decision.Started = 0, 0
		s.dropRequests()
		s.Activities, s.Timers, s.activityIDs = nil, nil, nil
		return
	}
	wakes := s.wakes(e)
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		s.WorkflowID, s.Run, s.Start, s.Status = a.WorkflowID, a.Run, a, schemas.StatusOpen
		s.StartedAt, s.StartBase = e.Time, e.Time
		s.Attributes, s.SignalIDs, s.RequestIDs = a.Attributes, slices.Clone(a.SignalIDs), slices.Clone(a.RequestIDs)
		s.Retention = a.Retention
		s.takeLocks(a.Locks, e.Time)
	case *schemas.RetentionSet:
		s.Retention = a.Policy
	case *schemas.WorkflowPaused:
		s.Status, s.Paused = schemas.StatusPaused, a
		s.rememberRequest(a.RequestID)
	case *schemas.WorkflowResumed:
		s.Status, s.Paused, s.Decision.Failures, s.Decision.Refusal = schemas.StatusOpen, nil, 0, ""
		s.Decision.Mismatches = 0
		s.Decision.waitFrom(e)
		s.rememberRequest(a.RequestID)
	case *schemas.WorkflowCancelRequested:
		s.CancelRequested = true
		s.rememberRequest(a.RequestID)
		s.rememberSignal(cancelID(a), false)
	case *schemas.Signal:
		s.rememberSignal(signalID(a), a.OriginRun != "")
		s.Decision.Signals++
		if a.OriginRun != "" {
			s.Copied++
		}
		if a.ExternalWorkflowExecution == nil && looksSent(a.RequestID) {
			s.Lookalikes = latest(s.Lookalikes, a.RequestID, rememberedSignals)
		}
	case *schemas.AttributesSet:
		s.setAttributes(a.Attributes)
	case *schemas.TimerScheduled:
		if s.Timers == nil {
			s.Timers = make(map[string]Timer)
		}
		s.Timers[a.TimerID] = Timer{ScheduledID: e.ID, Base: e.Time, After: a.StartToFireTimeout}
	case *schemas.TimerExpired:
		delete(s.Timers, a.TimerID)
	case *schemas.TimerCanceled:
		delete(s.Timers, a.TimerID)
	default:
		if !s.applyDecider(e) && !s.applyExchange(e) && !s.applyLock(e) && !s.applyState(e) && !s.applyReplayPoint(e) {
			s.applyActivity(e)
		}
	}
	s.Continuing.see(s, e)
	if s.Paused != nil && wakes {
		s.Decision.Woken = true
	}
	s.Decision.judged(s.Base.CompletedID, e.Attributes)
	s.Decision.Others = s.Decision.Others || wakes && e.Type() != schemas.EventSignal
}

// signalID is what a repeat of a signal is known by; empty if its sender gave nothing.
func signalID(a *schemas.Signal) string {
	if a.ExternalWorkflowExecution != nil {
		return externalSignalID(a.ExternalWorkflowExecution.Run, a.ExternalScheduledEventID)
	}
	return a.RequestID
}

// cancelID is what a repeat of another workflow's cancel request is known by; empty for any other.
func cancelID(a *schemas.WorkflowCancelRequested) string {
	if a.ExternalWorkflowExecution == nil || a.ExternalScheduledEventID == 0 {
		return ""
	}
	return externalSignalID(a.ExternalWorkflowExecution.Run, a.ExternalScheduledEventID)
}

// rememberSignal knows the id of a copy already, unless there was no room for it at the start of
// the run.
func (s *State) rememberSignal(id string, isCopy bool) {
	if id != "" && !(isCopy && slices.Contains(s.SignalIDs, id)) {
		s.SignalIDs = latest(s.SignalIDs, id, rememberedSignals)
	}
}

func (s *State) rememberRequest(id string) {
	if id != "" {
		s.RequestIDs = latest(s.RequestIDs, id, rememberedRequests)
	}
}

// latest appends to a list of bounded length. append copies a long list once in a while, so its
// array does not grow for ever.
func latest(ids []string, id string, most int) []string {
	return append(ids[max(0, len(ids)+1-most):], id)
}

// setAttributes never changes the map in place: it may belong to an event.
func (s *State) setAttributes(change map[string]string) {
	merged := make(map[string]string, len(s.Attributes)+len(change))
	for _, m := range []map[string]string{s.Attributes, change} {
		for k, v := range m {
			if v == "" {
				delete(merged, k)
			} else {
				merged[k] = v
			}
		}
	}
	s.Attributes = merged
}

func (s *State) applyDecider(e schemas.Event) bool {
	d := &s.Decision
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
		d.Scheduled = e.ID
		d.waitFrom(e)
	case *schemas.DeciderStarted:
		d.Started, d.StartedOf, d.StartedBase, d.Scheduled = e.ID, a.ScheduledEventID, e.Time, 0
		d.Woken, d.Signals, d.Others = false, 0, false // this decider sees it
	case *schemas.DeciderCompleted:
		d.Previous, d.Started, d.Failures, d.Earlier = d.Started, 0, 0, d.Failures
		d.Accepted, d.Refusal, d.Mismatches = false, "", 0
		if d.Signals == 0 && !d.Others {
			d.Held, d.Undone = 0, 0
		}
		d.waitFrom(e)
		s.Context = a.ExecutionContext
		s.Base = schemas.DecisionBase{CompletedID: e.ID, Digest: a.ReplyDigest}
	case *schemas.DeciderTimedOut:
		if a.StartedEventID == 0 {
			d.Scheduled = 0 // nobody took it; that is not the decider's failure
		} else {
			d.fail(e, "")
		}
	case *schemas.DeciderFailed:
		d.fail(e, a.Cause)
		if a.Cause == schemas.CauseUnhandledDecision {
			d.undo(a.Decision)
		}
	case *schemas.WorkflowCloseFailed:
		if a.Decision == schemas.DecideContinueAsNew && a.Cause == schemas.CauseUnhandledDecision {
			d.Held++
		}
	default:
		return false
	}
	return true
}

// waitFrom lets the wait of a pending decision begin with e: nobody could have taken it before.
func (d *Decision) waitFrom(e schemas.Event) {
	if d.Scheduled != 0 {
		d.WaitsFrom, d.ScheduledBase = e.ID, e.Time
	}
}

func (d *Decision) fail(e schemas.Event, cause schemas.Cause) {
	d.Started, d.Refusal = 0, ""
	d.Failures++
	if cause == schemas.CauseNonDeterministic {
		d.Mismatches++
	} else {
		d.Mismatches = 0
	}
	d.waitFrom(e)
}

// undo follows an answer of which nothing stands. The decider has not failed: it answered.
func (d *Decision) undo(closing schemas.DecisionType) {
	d.Failures = 0
	d.Undone++
	if closing == schemas.DecideContinueAsNew {
		d.Held++
	}
}

func (s *State) applyActivity(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		if s.Activities == nil {
			s.Activities = make(map[int64]*Activity)
		}
		act := &Activity{ScheduledID: e.ID, Scheduled: a, ScheduledBase: e.Time, Attempt: 1}
		if a.StartDelay.Limited() {
			act.NotBefore = e.Time.Add(a.StartDelay)
		}
		s.Activities[e.ID] = act
		s.remember(a.ActivityID, e.ID)
	case *schemas.ActivityStarted:
		if act := s.Activities[a.ScheduledEventID]; act != nil {
			act.Started, act.StartedBase, act.Attempt = e.ID, e.Time, a.Attempt
			act.Worker, act.TaskSequence, act.Nonce, act.Offered = a.Identity, a.TaskSequence, a.Nonce, a.Offered
			act.LastBeat, act.NotBefore = 0, 0
		}
	case *schemas.ActivityInterrupted:
		if act := s.Activities[a.ScheduledEventID]; act != nil {
			act.interrupted(e.Time, a)
		}
		s.nextAttempt(a.ScheduledEventID, a.Attempt, 0, a.HeartbeatDetails)
	case *schemas.ActivityRetryScheduled:
		if act := s.Activities[a.ScheduledEventID]; act != nil && !silence(a.Cause) {
			act.Interruptions, act.Losses = 0, nil // its worker has lived to say so
		}
		s.nextAttempt(a.ScheduledEventID, a.Attempt, a.NextTime, a.HeartbeatDetails)
	case *schemas.ActivityCancelRequested:
		if act := s.Activities[a.ScheduledEventID]; act != nil {
			act.CancelRequested = e.ID
		}
	case *schemas.ActivitySuccess:
		s.forget(a.ScheduledEventID)
	case *schemas.ActivityFailed:
		s.forget(a.ScheduledEventID)
	case *schemas.ActivityCanceled:
		s.forget(a.ScheduledEventID)
	case *schemas.ActivityTimedOut:
		s.forget(a.ScheduledEventID)
	case *schemas.ActivityScheduledTimeout:
		s.forget(a.ScheduledEventID)
	}
}

// nextAttempt keeps what the last heartbeat of any attempt said: an attempt that never beat has
// nothing to add.
func (s *State) nextAttempt(
	scheduledID int64, ended int, at schemas.Timestamp, resume schemas.Payload,
) {
	if act := s.Activities[scheduledID]; act != nil {
		if len(resume) > 0 {
			act.Resume = resume
		}
		act.LastBeat, act.BeatDetails = 0, nil
		act.Started, act.StartedBase, act.Attempt, act.NotBefore = 0, 0, ended+1, at
		act.Worker, act.TaskSequence, act.Nonce, act.Offered = "", 0, "", false
	}
}
