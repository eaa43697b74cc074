package schemas

// DeciderScheduled says that a decider is wanted.
type DeciderScheduled struct {
	StartToCloseTimeout    Duration `json:"startToCloseTimeout,omitempty"`
	ScheduleToStartTimeout Duration `json:"scheduleToStartTimeout,omitempty"`
	TaskPriority           int      `json:"taskPriority,omitempty"`
	// Attempt is 1 for the first try of a decision and grows with each timeout or failure in a row.
	Attempt int `json:"attempt,omitempty"`
}

// DeciderStarted bounds what its decider may see: nothing after this event.
type DeciderStarted struct {
	ScheduledEventID int64  `json:"scheduledEventId"`
	Identity         string `json:"identity,omitempty"`
}

// DeciderCompleted stands directly before what the decider decided.
type DeciderCompleted struct {
	ScheduledEventID int64   `json:"scheduledEventId"`
	StartedEventID   int64   `json:"startedEventId"`
	ExecutionContext Payload `json:"executionContext,omitempty"`
	Identity         string  `json:"identity,omitempty"`
	// ReplyDigest identifies the reply: a sticky decider compares it with the one it sent before it
	// trusts its cache.
	ReplyDigest string `json:"replyDigest,omitempty"`
	// Again says that the reply has asked for another decision directly after this one: a
	// DeciderScheduled follows what it decided, unless one is pending already, or the run is paused
	// or closed.
	Again bool `json:"again,omitempty"`
}

// DeciderTimedOut gives up on a decider. StartedEventID is 0 if none took the task.
type DeciderTimedOut struct {
	TimeoutType      TimeoutType `json:"timeoutType"`
	ScheduledEventID int64       `json:"scheduledEventId"`
	StartedEventID   int64       `json:"startedEventId"`
}

// DeciderFailed records that a decider reported an error, panicked, or answered what cannot be
// applied.
type DeciderFailed struct {
	Cause            Cause  `json:"cause"`
	Reason           string `json:"reason,omitempty"`
	Details          string `json:"details,omitempty"`
	ScheduledEventID int64  `json:"scheduledEventId"`
	StartedEventID   int64  `json:"startedEventId"`
	Identity         string `json:"identity,omitempty"`
	// Decision is what was to close the run, with the cause UNHANDLED_DECISION. That is no failure:
	// of the reply, which was all or nothing, nothing stands, since something had come in that the
	// decider had not seen.
	Decision DecisionType `json:"decision,omitempty"`
}
