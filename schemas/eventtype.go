package schemas

// EventType names what an event says. The spelling is the one on the wire.
type EventType string

// Events that the service writes.
const (
	EventWorkflowStarted         EventType = "WorkflowStarted"
	EventWorkflowTimedOut        EventType = "WorkflowTimedOut"
	EventWorkflowTerminated      EventType = "WorkflowTerminated"
	EventWorkflowCancelRequested EventType = "WorkflowCancelRequested"
	EventWorkflowPaused          EventType = "WorkflowPaused"
	EventWorkflowResumed         EventType = "WorkflowResumed"

	EventContinuationSuggested EventType = "ContinuationSuggested"
	EventContinuationHeld      EventType = "ContinuationHeld"
	EventContinuationReleased  EventType = "ContinuationReleased"

	EventDeciderScheduled EventType = "DeciderScheduled"
	EventDeciderStarted   EventType = "DeciderStarted"
	EventDeciderCompleted EventType = "DeciderCompleted"
	EventDeciderTimedOut  EventType = "DeciderTimedOut"
	EventDeciderFailed    EventType = "DeciderFailed"

	EventActivityStarted          EventType = "ActivityStarted"
	EventActivityTimedOut         EventType = "ActivityTimedOut"
	EventActivityScheduledTimeout EventType = "ActivityScheduledTimeout"
	EventActivityInterrupted      EventType = "ActivityInterrupted"
	EventActivityRetryScheduled   EventType = "ActivityRetryScheduled"

	EventTimerExpired EventType = "TimerExpired"

	EventChildStarted    EventType = "ChildStarted"
	EventChildSuccess    EventType = "ChildSuccess"
	EventChildFailed     EventType = "ChildFailed"
	EventChildTimedOut   EventType = "ChildTimedOut"
	EventChildCanceled   EventType = "ChildCanceled"
	EventChildTerminated EventType = "ChildTerminated"

	EventExternalSignaled        EventType = "ExternalSignaled"
	EventExternalCancelRequested EventType = "ExternalCancelRequested"

	EventLockAcquired EventType = "LockAcquired"
	EventLockBroken   EventType = "LockBroken"

	EventStateRead    EventType = "StateRead"
	EventStateSet     EventType = "StateSet"
	EventStateCleared EventType = "StateCleared"
	EventStateRefused EventType = "StateRefused"
)

// Refusals: what the service answers to a decision that it cannot carry out. All of them wake the
// decider.
const (
	EventActivityScheduleFailed EventType = "ActivityScheduleFailed"
	EventActivityCancelFailed   EventType = "ActivityCancelFailed"
	EventTimerScheduleFailed    EventType = "TimerScheduleFailed"
	EventTimerCancelFailed      EventType = "TimerCancelFailed"
	EventMarkerFailed           EventType = "MarkerFailed"
	EventChildStartFailed       EventType = "ChildStartFailed"
	EventSignalExternalFailed   EventType = "SignalExternalFailed"
	EventCancelExternalFailed   EventType = "CancelExternalFailed"
	EventLockRefused            EventType = "LockRefused"
	EventWorkflowCloseFailed    EventType = "WorkflowCloseFailed"
)

// Events that a decider causes by its decisions.
const (
	EventActivityScheduled       EventType = "ActivityScheduled"
	EventActivityCancelRequested EventType = "ActivityCancelRequested"
	EventTimerScheduled          EventType = "TimerScheduled"
	EventTimerCanceled           EventType = "TimerCanceled"
	EventMarker                  EventType = "Marker"
	EventChildScheduled          EventType = "ChildScheduled"
	EventSignalExternalScheduled EventType = "SignalExternalScheduled"
	EventCancelExternalScheduled EventType = "CancelExternalScheduled"
	EventLockRequested           EventType = "LockRequested"
	EventLockReleased            EventType = "LockReleased"
	EventStateRequested          EventType = "StateRequested"
	EventReplayPointSet          EventType = "ReplayPointSet"
	EventReplayPointsReset       EventType = "ReplayPointsReset"
	EventRetentionSet            EventType = "RetentionSet"
	EventAttributesSet           EventType = "AttributesSet"
	EventWorkflowSuccess         EventType = "WorkflowSuccess"
	EventWorkflowFailed          EventType = "WorkflowFailed"
	EventWorkflowCanceled        EventType = "WorkflowCanceled"
	EventWorkflowContinuedAsNew  EventType = "WorkflowContinuedAsNew"
)

// Events that activity workers and the outside world cause.
const (
	EventActivitySuccess  EventType = "ActivitySuccess"
	EventActivityFailed   EventType = "ActivityFailed"
	EventActivityCanceled EventType = "ActivityCanceled"
	EventSignal           EventType = "Signal"
)

// Group says who causes an event.
type Group uint8

// The groups.
const (
	GroupService Group = iota + 1
	GroupDecider
	GroupActivity
	GroupExternal
)

type typeInfo struct {
	make   func() Attributes
	group  Group
	wakes  bool
	closes bool
}

// Known tells whether this version knows the type.
func (t EventType) Known() bool { return types[t].make != nil }

// Group returns who causes events of the type; 0 if the type is unknown.
func (t EventType) Group() Group { return types[t].group }

// Wakes tells whether each event of the type is a reason to ask the decider again. ChildStarted,
// ExternalSignaled and ExternalCancelRequested are one if what they answer says tell.
func (t EventType) Wakes() bool { return types[t].wakes }

// Closes tells whether the event ends its run.
func (t EventType) Closes() bool { return types[t].closes }

// EventTypes returns every known type, in no order.
func EventTypes() []EventType {
	all := make([]EventType, 0, len(types))
	for t := range types {
		all = append(all, t)
	}
	return all
}
