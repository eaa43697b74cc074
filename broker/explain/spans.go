package explain

import (
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Spans are the spans that events of a run have begun or changed, as [ops.SpansResponse] has them;
// base is when the run began.
func Spans(events []schemas.Event, base schemas.Timestamp) ops.Spans {
	b := &spanBuilder{
		Spans: ops.Spans{
			Kind: []ops.SpanKind{}, Name: []string{}, Queued: []int64{}, Start: []int64{},
			End: []int64{}, Outcome: []string{}, Event: []int64{}, Of: []int64{},
		},
		base: base, at: map[int64]int{}, open: map[string]int{},
	}
	for i := range events {
		b.add(&events[i])
	}
	return b.Spans
}

// spanBuilder makes spans of events.
type spanBuilder struct {
	ops.Spans
	base schemas.Timestamp
	at   map[int64]int  // spans by their events
	open map[string]int // locks and pauses, whose ends name no event
	now  int64          // the time of the event, in microseconds since base
}

func (b *spanBuilder) add(e *schemas.Event) {
	b.now = int64(e.Time.Sub(b.base) / time.Microsecond)
	switch a := e.Attributes.(type) {
	case *schemas.DeciderScheduled:
		b.queued(ops.SpanDecision, "", e.ID)
	case *schemas.DeciderStarted:
		b.started(ops.SpanDecision, a.ScheduledEventID)
	case *schemas.DeciderCompleted:
		b.ended(ops.SpanDecision, a.ScheduledEventID, "completed")
	case *schemas.DeciderFailed:
		b.ended(ops.SpanDecision, a.ScheduledEventID, "failed")
	case *schemas.DeciderTimedOut:
		b.ended(ops.SpanDecision, a.ScheduledEventID, "timedOut")

	case *schemas.TimerScheduled:
		b.begun(ops.SpanTimer, a.TimerID, e.ID)
	case *schemas.TimerExpired:
		b.ended(ops.SpanTimer, a.ScheduledEventID, "expired")
	case *schemas.TimerCanceled:
		b.ended(ops.SpanTimer, a.ScheduledEventID, "canceled")

	case *schemas.SignalExternalScheduled:
		b.begun(ops.SpanExternal, a.WorkflowID, e.ID)
	case *schemas.CancelExternalScheduled:
		b.begun(ops.SpanExternal, a.WorkflowID, e.ID)
	case *schemas.ExternalSignaled:
		b.ended(ops.SpanExternal, a.ScheduledEventID, "delivered")
	case *schemas.ExternalCancelRequested:
		b.ended(ops.SpanExternal, a.ScheduledEventID, "delivered")
	case *schemas.SignalExternalFailed:
		b.ended(ops.SpanExternal, a.ScheduledEventID, "refused")
	case *schemas.CancelExternalFailed:
		b.ended(ops.SpanExternal, a.ScheduledEventID, "refused")

	case *schemas.StateRequested:
		b.begun(ops.SpanState, a.Key, e.ID)
	case *schemas.StateRead:
		b.ended(ops.SpanState, a.ScheduledEventID, "completed")
	case *schemas.StateSet:
		b.ended(ops.SpanState, a.ScheduledEventID, "completed")
	case *schemas.StateCleared:
		b.ended(ops.SpanState, a.ScheduledEventID, "completed")
	case *schemas.StateRefused:
		b.ended(ops.SpanState, a.ScheduledEventID, "refused")

	case *schemas.WorkflowPaused:
		b.begun(ops.SpanPause, "", e.ID)
		b.open[string(ops.SpanPause)] = b.at[e.ID]
	case *schemas.WorkflowResumed:
		b.endedByName(ops.SpanPause, "", "resumed")
	case *schemas.Signal:
		b.tick(ops.SpanSignal, a.SignalName, e.ID)
	case *schemas.Marker:
		b.tick(ops.SpanMarker, a.MarkerName, e.ID)
	default:
		b.addOthers(e)
	}
}

// addOthers goes on with activities, children and locks.
func (b *spanBuilder) addOthers(e *schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		b.queued(ops.SpanActivity, a.ActivityID, e.ID)
	case *schemas.ActivityStarted:
		b.attempted(a.ScheduledEventID, e.ID)
	case *schemas.ActivityInterrupted:
		b.attemptEnded(a.ScheduledEventID, a.StartedEventID, "interrupted")
	case *schemas.ActivityRetryScheduled:
		b.attemptEnded(a.ScheduledEventID, a.StartedEventID, "failed")
	case *schemas.ActivitySuccess:
		b.activityEnded(a.ScheduledEventID, a.StartedEventID, "completed")
	case *schemas.ActivityFailed:
		b.activityEnded(a.ScheduledEventID, a.StartedEventID, "failed")
	case *schemas.ActivityCanceled:
		b.activityEnded(a.ScheduledEventID, a.StartedEventID, "canceled")
	case *schemas.ActivityTimedOut:
		b.activityEnded(a.ScheduledEventID, a.StartedEventID, "timedOut")
	case *schemas.ActivityScheduledTimeout:
		b.activityEnded(a.ScheduledEventID, 0, "timedOut")

	case *schemas.ChildScheduled:
		b.queued(ops.SpanChild, a.WorkflowID, e.ID)
	case *schemas.ChildStarted:
		b.started(ops.SpanChild, a.ScheduledEventID)
	case *schemas.ChildSuccess:
		b.ended(ops.SpanChild, a.ScheduledEventID, "completed")
	case *schemas.ChildFailed:
		b.ended(ops.SpanChild, a.ScheduledEventID, "failed")
	case *schemas.ChildTimedOut:
		b.ended(ops.SpanChild, a.ScheduledEventID, "timedOut")
	case *schemas.ChildCanceled:
		b.ended(ops.SpanChild, a.ScheduledEventID, "canceled")
	case *schemas.ChildTerminated:
		b.ended(ops.SpanChild, a.ScheduledEventID, "terminated")
	case *schemas.ChildStartFailed:
		b.ended(ops.SpanChild, a.ScheduledEventID, "refused")

	case *schemas.LockRequested:
		name := lockName(a.Scope, a.Lock)
		b.queued(ops.SpanLock, name, e.ID)
		b.open[string(ops.SpanLock)+name] = b.at[e.ID]
	case *schemas.LockAcquired:
		b.started(ops.SpanLock, a.ScheduledEventID)
	case *schemas.LockRefused:
		b.ended(ops.SpanLock, a.ScheduledEventID, "refused")
	case *schemas.LockReleased:
		b.endedByName(ops.SpanLock, lockName(a.Scope, a.Lock), "released")
	case *schemas.LockBroken:
		b.endedByName(ops.SpanLock, lockName(a.Scope, a.Lock), "broken")
	}
}

// lockName is a lock with its scope, if it has one.
func lockName(scope, lock string) string {
	if scope == "" {
		return lock
	}
	return scope + "/" + lock
}

// span is where the span of an event stands. One that began before these events is appended.
func (b *spanBuilder) span(kind ops.SpanKind, name string, event, of int64) int {
	i, known := b.at[event]
	if !known {
		i = b.Add(kind, name, event, of)
		b.at[event] = i
	}
	return i
}

func (b *spanBuilder) queued(kind ops.SpanKind, name string, event int64) {
	b.Queued[b.span(kind, name, event, 0)] = b.now
}

func (b *spanBuilder) begun(kind ops.SpanKind, name string, event int64) {
	b.Start[b.span(kind, name, event, 0)] = b.now
}

func (b *spanBuilder) started(kind ops.SpanKind, event int64) { b.begun(kind, "", event) }

// ended ends the span of an event; 0 is none: the decision was refused.
func (b *spanBuilder) ended(kind ops.SpanKind, event int64, outcome string) {
	if event != 0 {
		b.end(b.span(kind, "", event, 0), outcome)
	}
}

func (b *spanBuilder) end(i int, outcome string) { b.End[i], b.Outcome[i] = b.now, outcome }

// endedByName ends the last span of a kind and a name.
func (b *spanBuilder) endedByName(kind ops.SpanKind, name, outcome string) {
	key := string(kind) + name
	i, known := b.open[key]
	if delete(b.open, key); !known || b.End[i] >= 0 {
		i = b.Add(kind, name, 0, 0)
	}
	b.end(i, outcome)
}

func (b *spanBuilder) tick(kind ops.SpanKind, name string, event int64) {
	i := b.span(kind, name, event, 0)
	b.Start[i], b.End[i] = b.now, b.now
}

// attempted begins an attempt, and with the first of them its activity.
func (b *spanBuilder) attempted(scheduled, started int64) {
	activity := b.span(ops.SpanActivity, "", scheduled, 0)
	if b.Start[activity] < 0 {
		b.Start[activity] = b.now
	}
	b.Start[b.span(ops.SpanAttempt, b.Name[activity], started, scheduled)] = b.now
}

// attemptEnded ends an attempt, if there was one.
func (b *spanBuilder) attemptEnded(scheduled, started int64, outcome string) {
	if started != 0 {
		b.end(b.span(ops.SpanAttempt, "", started, scheduled), outcome)
	}
}

func (b *spanBuilder) activityEnded(scheduled, started int64, outcome string) {
	b.attemptEnded(scheduled, started, outcome)
	b.ended(ops.SpanActivity, scheduled, outcome)
}
