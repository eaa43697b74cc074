package schemas

// ScheduleActivity queues work. Options left out come from the run's activity defaults.
type ScheduleActivity struct {
	ActivityID             string       `json:"activityId"`
	ActivityType           string       `json:"activityType"`
	ActivityTypeVersion    string       `json:"activityTypeVersion,omitempty"`
	Input                  Payload      `json:"input,omitempty"`
	Control                Payload      `json:"control,omitempty"`
	List                   string       `json:"list,omitempty"`
	TaskPriority           int          `json:"taskPriority,omitempty"`
	ScheduleToStartTimeout Duration     `json:"scheduleToStartTimeout,omitempty"`
	StartToCloseTimeout    Duration     `json:"startToCloseTimeout,omitempty"`
	ScheduleToCloseTimeout Duration     `json:"scheduleToCloseTimeout,omitempty"`
	HeartbeatTimeout       Duration     `json:"heartbeatTimeout,omitempty"`
	StartDelay             Duration     `json:"startDelay,omitempty"`
	NotIdempotent          bool         `json:"notIdempotent,omitempty"`
	Retry                  *RetryPolicy `json:"retry,omitempty"`
	// MaximumInterruptions is how often in a row the worker of the activity may be lost; then the
	// activity fails, with the reason interrupted. 0 means 10, -1 no limit. A heartbeat begins a
	// new row. What a worker gives back because it stops does not count, and no interruption counts
	// as one of the attempts of retry.
	MaximumInterruptions int `json:"maximumInterruptions,omitempty"`
}

// RequestCancelActivity asks for the end of an open activity.
type RequestCancelActivity struct {
	ActivityID string `json:"activityId"`
}

// ScheduleTimer arms a timer under a name that no open timer of the run has.
type ScheduleTimer struct {
	TimerID string `json:"timerId"`
	// StartToFireTimeout is how long until the timer expires, zero or more. Left out it is zero:
	// the timer expires at once.
	StartToFireTimeout Duration `json:"startToFireTimeout"`
	Control            Payload  `json:"control,omitempty"`
}

// CancelTimer takes an open timer back.
type CancelTimer struct {
	TimerID string `json:"timerId"`
}

// RecordMarker writes a note into the history; it wakes nobody.
type RecordMarker struct {
	MarkerName string  `json:"markerName"`
	Details    Payload `json:"details,omitempty"`
}

// StartChild starts a workflow whose close is reported to this one.
type StartChild struct {
	WorkflowID                   string            `json:"workflowId"`
	WorkflowType                 string            `json:"workflowType"`
	WorkflowTypeVersion          string            `json:"workflowTypeVersion,omitempty"`
	Input                        Payload           `json:"input,omitempty"`
	Control                      Payload           `json:"control,omitempty"`
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	TagList                      []string          `json:"tagList,omitempty"`
	// Part says that the child does a part of the run's own work, and is of its type. It begins
	// even if that type is deprecated, as the run goes on, and need not be registered.
	Part bool `json:"part,omitempty"`
	// Tell says that ChildStarted wakes the decider.
	Tell bool `json:"tell,omitempty"`
}

// SignalExternal sends a signal to another workflow.
type SignalExternal struct {
	WorkflowID string  `json:"workflowId"`
	Run        string  `json:"run,omitempty"`
	SignalName string  `json:"signalName"`
	Input      Payload `json:"input,omitempty"`
	Control    Payload `json:"control,omitempty"`
	// Tell says that ExternalSignaled wakes the decider.
	Tell bool `json:"tell,omitempty"`
}

// CancelExternal sends a cancel request to another workflow.
type CancelExternal struct {
	WorkflowID string  `json:"workflowId"`
	Run        string  `json:"run,omitempty"`
	Control    Payload `json:"control,omitempty"`
	// Tell says that ExternalCancelRequested wakes the decider.
	Tell bool `json:"tell,omitempty"`
}

// AcquireLock asks for a lock, or with Limit for one of that many places.
type AcquireLock struct {
	Lock  string   `json:"lock"`
	Scope string   `json:"scope,omitempty"`
	Limit int      `json:"limit,omitempty"`
	Lease Duration `json:"lease,omitempty"`
}

// ReleaseLock gives a lock back.
type ReleaseLock struct {
	Lock  string `json:"lock"`
	Scope string `json:"scope,omitempty"`
}

// GetState reads a state key.
type GetState struct {
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
}

// SetState sets a state key, if it has the required value: see require.
type SetState struct {
	Key     string  `json:"key"`
	Scope   string  `json:"scope,omitempty"`
	Value   Payload `json:"value,omitempty"`
	Require Payload `json:"require,omitempty"`
}

// ClearState removes a state key.
type ClearState struct {
	Key   string `json:"key"`
	Scope string `json:"scope,omitempty"`
}

// SetReplayPoint marks a step from which the run may be replayed.
type SetReplayPoint struct {
	Name  string  `json:"name"`
	State Payload `json:"state,omitempty"`
	Only  bool    `json:"only,omitempty"`
}

// ResetReplayPoints forgets every replay point.
type ResetReplayPoints struct{}

// SetRetention changes how long the run is kept after it closes. Retention is an expression such as
// max(24h, 5) soft 10; Hash names the group in which the run is judged, and stands for the word
// hash in the expression.
type SetRetention struct {
	Retention string `json:"retention"`
	Hash      string `json:"hash,omitempty"`
}

// SetAttributes changes what the run shows in lists.
type SetAttributes struct {
	Attributes map[string]string `json:"attributes"`
}

// CompleteWorkflow ends the run with a result. A decision that closes must be the last of its
// reply.
type CompleteWorkflow struct {
	Result Payload `json:"result,omitempty"`
}

// FailWorkflow ends the run with a reason.
type FailWorkflow struct {
	Reason  string  `json:"reason,omitempty"`
	Details Payload `json:"details,omitempty"`
}

// CancelWorkflow ends the run because it was asked to.
type CancelWorkflow struct {
	Details Payload `json:"details,omitempty"`
}

// ContinueAsNew ends the run and starts a fresh one under the same id. What is left out stays as it
// was, the input too; null is left out. ActivityDefaults are taken as a whole.
type ContinueAsNew struct {
	Input                        Payload           `json:"input,omitempty"`
	WorkflowTypeVersion          string            `json:"workflowTypeVersion,omitempty"`
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	TagList                      []string          `json:"tagList,omitempty"`
	// Part says that the next run does the rest of this one's work, so that its history does not
	// grow too long. It begins even if the type is deprecated, as this run would go on, and need
	// not be registered; unless the version is another one.
	Part bool `json:"part,omitempty"`
}
