package schemas

// RetryPolicy says how the broker repeats a failed activity. Absent by default: retry is the
// decider's business.
type RetryPolicy struct {
	// InitialInterval is the pause before the second attempt. Defaults to 1 s.
	InitialInterval Duration `json:"initialInterval,omitempty"`
	// BackoffCoefficient is by how much each pause is longer than the one before, from 1 to 1000.
	// Defaults to 2.
	BackoffCoefficient float64 `json:"backoffCoefficient,omitempty"`
	// MaximumInterval is the longest pause. Defaults to 100 times the first; NONE takes the bound
	// away.
	MaximumInterval Duration `json:"maximumInterval,omitempty"`
	// MaximumAttempts is how many attempts there may be, the first among them. Defaults to no
	// limit: then the activity is repeated until it succeeds or its schedule-to-close limit comes.
	// Below 0 is refused.
	MaximumAttempts int `json:"maximumAttempts,omitempty"`
	// NonRetryable are the reasons of failures after which there is no other attempt; that of an
	// attempt which ran out of time is START_TO_CLOSE or HEARTBEAT. There is none either after a
	// failure that its worker reports as final.
	NonRetryable []string `json:"nonRetryable,omitempty"`
}

// ActivityScheduled queues work on a task list.
type ActivityScheduled struct {
	ActivityID             string       `json:"activityId"`
	ActivityType           string       `json:"activityType"`
	ActivityTypeVersion    string       `json:"activityTypeVersion,omitempty"`
	Input                  Payload      `json:"input,omitempty"`
	Control                Payload      `json:"control,omitempty"`
	List                   string       `json:"list"`
	TaskPriority           int          `json:"taskPriority,omitempty"`
	ScheduleToStartTimeout Duration     `json:"scheduleToStartTimeout,omitempty"`
	StartToCloseTimeout    Duration     `json:"startToCloseTimeout,omitempty"`
	ScheduleToCloseTimeout Duration     `json:"scheduleToCloseTimeout,omitempty"`
	HeartbeatTimeout       Duration     `json:"heartbeatTimeout,omitempty"`
	StartDelay             Duration     `json:"startDelay,omitempty"`
	NotIdempotent          bool         `json:"notIdempotent,omitempty"`
	Retry                  *RetryPolicy `json:"retry,omitempty"`
	// MaximumInterruptions is the decision's; 0 means [DefaultMaximumInterruptions].
	MaximumInterruptions    int   `json:"maximumInterruptions,omitempty"`
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// ActivityStarted says that a worker took the task.
type ActivityStarted struct {
	ScheduledEventID int64  `json:"scheduledEventId"`
	Attempt          int    `json:"attempt"`
	Identity         string `json:"identity,omitempty"`
	// TaskSequence and Nonce name the delivery that started it: only a redelivery of that message
	// may interrupt it, and the permission to go is repeated to that nonce alone.
	TaskSequence uint64 `json:"taskSequence,omitempty"`
	Nonce        string `json:"nonce,omitempty"`
	// Offered: the worker was offered the task, and there was no message. One is stored after this
	// event, unless the activity is over soon; it says nothing about the worker, who is asked
	// instead.
	Offered bool `json:"offered,omitempty"`
}

// ActivitySuccess closes an activity with its result.
type ActivitySuccess struct {
	ScheduledEventID int64   `json:"scheduledEventId"`
	StartedEventID   int64   `json:"startedEventId"`
	Result           Payload `json:"result,omitempty"`
}

// ActivityFailed closes an activity with a reason the decider can read.
type ActivityFailed struct {
	ScheduledEventID int64   `json:"scheduledEventId"`
	StartedEventID   int64   `json:"startedEventId"`
	Reason           string  `json:"reason,omitempty"`
	Details          Payload `json:"details,omitempty"`
	// Final: the worker has said that another attempt is of no use. The policy may have allowed it.
	Final bool `json:"final,omitempty"`
}

// ActivityCanceled closes an activity that was canceled. StartedEventID is 0 if it had not begun.
type ActivityCanceled struct {
	ScheduledEventID             int64   `json:"scheduledEventId"`
	StartedEventID               int64   `json:"startedEventId"`
	LatestCancelRequestedEventID int64   `json:"latestCancelRequestedEventId,omitempty"`
	Details                      Payload `json:"details,omitempty"`
}

// ActivityTimedOut closes an activity that took too long or whose heartbeat stopped.
type ActivityTimedOut struct {
	TimeoutType      TimeoutType `json:"timeoutType"`
	ScheduledEventID int64       `json:"scheduledEventId"`
	StartedEventID   int64       `json:"startedEventId"`
	// Details are those of the last heartbeat.
	Details Payload `json:"details,omitempty"`
}

// ActivityScheduledTimeout closes an activity that no worker took in time.
type ActivityScheduledTimeout struct {
	TimeoutType      TimeoutType `json:"timeoutType"`
	ScheduledEventID int64       `json:"scheduledEventId"`
}

// ActivityInterrupted records that the worker of an attempt is gone.
type ActivityInterrupted struct {
	ScheduledEventID int64  `json:"scheduledEventId"`
	StartedEventID   int64  `json:"startedEventId"`
	Attempt          int    `json:"attempt"`
	Identity         string `json:"identity,omitempty"`
	// HeartbeatDetails are those of the last heartbeat; the next attempt gets them.
	HeartbeatDetails Payload `json:"heartbeatDetails,omitempty"`
	// Interruptions is how many interruptions there have been in a row that count, this one among
	// them. A heartbeat or a failure that a worker reports begins a new row.
	Interruptions int `json:"interruptions,omitempty"`
	// Returned: the worker has stopped as planned and gave the task back. That does not count.
	Returned bool `json:"returned,omitempty"`
}

// ActivityRetryScheduled records that a failed attempt will be followed by another.
type ActivityRetryScheduled struct {
	ScheduledEventID int64   `json:"scheduledEventId"`
	StartedEventID   int64   `json:"startedEventId,omitempty"`
	Attempt          int     `json:"attempt"`
	Cause            string  `json:"cause,omitempty"`
	Details          Payload `json:"details,omitempty"`
	// HeartbeatDetails are those of the last heartbeat; the next attempt gets them.
	HeartbeatDetails Payload   `json:"heartbeatDetails,omitempty"`
	NextTime         Timestamp `json:"nextTime"`
}

// ActivityCancelRequested asks for the end of an activity.
type ActivityCancelRequested struct {
	ActivityID              string `json:"activityId"`
	ScheduledEventID        int64  `json:"scheduledEventId"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// ActivityScheduleFailed refuses to queue an activity.
type ActivityScheduleFailed struct {
	ActivityID              string `json:"activityId"`
	ActivityType            string `json:"activityType"`
	Cause                   Cause  `json:"cause"`
	Details                 string `json:"details,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// ActivityCancelFailed refuses to cancel an activity.
type ActivityCancelFailed struct {
	ActivityID              string `json:"activityId"`
	Cause                   Cause  `json:"cause"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}
