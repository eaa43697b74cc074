package schemas

import "slices"

// words are the names that a compact record writes as a number: that of its place here, from 1 on.
// They are the fields of records and of the attributes of events. What is not here is written by
// its name, so a field may get a number in a later release than the one that brings it. Names are
// appended; none is moved, and none is taken out.
var words = [...]string{
	"workflowId", "run", "first", "events", "inbox", "incarnation", "sequence", "time", "signals",
	"fence", "previous", "snapshotSequence", "snapshot", "activityId", "cause",
	"deciderCompletedEventId", "scheduledEventId", "startedEventId", "latestCancelRequestedEventId",
	"details", "reason", "attempt", "identity", "heartbeatDetails", "nextTime", "activityType",
	"activityTypeVersion", "input", "control", "list", "taskPriority", "scheduleToStartTimeout",
	"startToCloseTimeout", "scheduleToCloseTimeout", "heartbeatTimeout", "startDelay",
	"notIdempotent", "retry", "initialInterval", "backoffCoefficient", "maximumInterval",
	"maximumAttempts", "nonRetryable", "timeoutType", "taskSequence", "nonce", "result",
	"attributes", "workflowExecution", "workflowType", "workflowTypeVersion",
	"executionStartToCloseTimeout", "taskStartToCloseTimeout", "activityDefaults", "childPolicy",
	"tagList", "executionContext", "replyDigest", "lock", "scope", "limit", "lease", "markerName",
	"name", "state", "only", "retention", "hash", "signalName", "externalWorkflowExecution",
	"externalScheduledEventId", "requestId", "key", "value", "revision", "decision", "require",
	"timerId", "startToFireTimeout", "newExecutionRun", "taskScheduleToStartTimeout",
	"continuedExecutionRun", "parentWorkflowExecution", "parentScheduledEventId",
	"firstExecutionRun", "depth", "signalIds", "offered", "requestIds", "eventId", "expires",
	"holder", "locks", "policy", "disk", "soft", "disabled", "parentRetention", "replays", "from",
	"force",
}

// eventWords are the types that a compact record writes as a number, from 1 on. The list is closed:
// a type that comes later is written by its name and its attributes with theirs, because a reader
// that does not know the type keeps its name.
var eventWords = [...]EventType{
	EventWorkflowStarted, EventWorkflowTimedOut, EventWorkflowTerminated,
	EventWorkflowCancelRequested, EventWorkflowPaused, EventWorkflowResumed, EventDeciderScheduled,
	EventDeciderStarted, EventDeciderCompleted, EventDeciderTimedOut, EventDeciderFailed,
	EventActivityStarted, EventActivityTimedOut, EventActivityScheduledTimeout,
	EventActivityInterrupted, EventActivityRetryScheduled, EventTimerExpired, EventChildStarted,
	EventChildSuccess, EventChildFailed, EventChildTimedOut, EventChildCanceled,
	EventChildTerminated, EventExternalSignaled, EventExternalCancelRequested, EventLockAcquired,
	EventLockBroken, EventStateRead, EventStateSet, EventStateCleared, EventStateRefused,
	EventActivityScheduleFailed, EventActivityCancelFailed, EventTimerScheduleFailed,
	EventTimerCancelFailed, EventMarkerFailed, EventChildStartFailed, EventSignalExternalFailed,
	EventCancelExternalFailed, EventWorkflowCloseFailed, EventActivityScheduled,
	EventActivityCancelRequested, EventTimerScheduled, EventTimerCanceled, EventMarker,
	EventChildScheduled, EventSignalExternalScheduled, EventCancelExternalScheduled,
	EventLockRequested, EventLockReleased, EventStateRequested, EventReplayPointSet,
	EventReplayPointsReset, EventRetentionSet, EventAttributesSet, EventWorkflowSuccess,
	EventWorkflowFailed, EventWorkflowCanceled, EventWorkflowContinuedAsNew, EventActivitySuccess,
	EventActivityFailed, EventActivityCanceled, EventSignal,
}

// RecordWords returns the names that records write as numbers, in their order; the first is number
// 1.
func RecordWords() []string { return slices.Clone(words[:]) }

// RecordEventTypes returns the types of events that records write as numbers, in their order; the
// first is number 1.
func RecordEventTypes() []EventType { return slices.Clone(eventWords[:]) }
