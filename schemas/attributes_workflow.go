package schemas

import "fmt"

// Execution names one run of a workflow. An empty Run means the open one, or else the latest.
type Execution struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
}

// ChildPolicy says what becomes of the children when their parent is terminated or times out.
type ChildPolicy string

// The child policies.
const (
	ChildTerminate     ChildPolicy = "TERMINATE"
	ChildRequestCancel ChildPolicy = "REQUEST_CANCEL"
	ChildAbandon       ChildPolicy = "ABANDON"
)

// Validate refuses what is no child policy; empty is the default. The error names the field.
func (p ChildPolicy) Validate(field string) error {
	switch p {
	case "", ChildTerminate, ChildRequestCancel, ChildAbandon:
		return nil
	}
	return fmt.Errorf("%s is %q; want %s, %s or %s",
		field, string(p), ChildTerminate, ChildRequestCancel, ChildAbandon)
}

// TimeoutType says which limit ran out.
type TimeoutType string

// The timeout types.
const (
	TimeoutStartToClose    TimeoutType = "START_TO_CLOSE"
	TimeoutScheduleToStart TimeoutType = "SCHEDULE_TO_START"
	TimeoutScheduleToClose TimeoutType = "SCHEDULE_TO_CLOSE"
	TimeoutHeartbeat       TimeoutType = "HEARTBEAT"
)

// ActivityDefaults are the options an activity takes where its decision says nothing.
type ActivityDefaults struct {
	List                   string   `json:"list,omitempty"`
	ScheduleToStartTimeout Duration `json:"scheduleToStartTimeout,omitempty"`
	StartToCloseTimeout    Duration `json:"startToCloseTimeout,omitempty"`
	ScheduleToCloseTimeout Duration `json:"scheduleToCloseTimeout,omitempty"`
	HeartbeatTimeout       Duration `json:"heartbeatTimeout,omitempty"`
}

// WorkflowStarted is always event 1.
type WorkflowStarted struct {
	WorkflowID                   string            `json:"workflowId"`
	Run                          string            `json:"run"`
	WorkflowType                 string            `json:"workflowType"`
	WorkflowTypeVersion          string            `json:"workflowTypeVersion,omitempty"`
	Input                        Payload           `json:"input,omitempty"`
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskScheduleToStartTimeout   Duration          `json:"taskScheduleToStartTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	TagList                      []string          `json:"tagList,omitempty"`
	Attributes                   map[string]string `json:"attributes,omitempty"`
	ContinuedExecutionRun        string            `json:"continuedExecutionRun,omitempty"`
	ParentWorkflowExecution      *Execution        `json:"parentWorkflowExecution,omitempty"`
	ParentScheduledEventID       int64             `json:"parentScheduledEventId,omitempty"`
	// FirstExecutionRun is the first run of a chain that continued as new; empty in that run
	// itself.
	FirstExecutionRun string `json:"firstExecutionRun,omitempty"`
	// Depth is how many ancestors the run has.
	Depth int `json:"depth,omitempty"`
	// SignalIDs are those that the runs before it in the chain have received: a repeat of one of
	// them is dropped.
	SignalIDs []string `json:"signalIds,omitempty"`
	// RequestIDs are those of operators' requests that the runs before it in the chain have
	// received: a repeat of one of them, which may find this run, is answered and not carried out
	// again.
	RequestIDs []string `json:"requestIds,omitempty"`
	// Locks are those that the run has from the one which it continues.
	Locks []HeldLock `json:"locks,omitempty"`
	// Retention is that of the run which it continues or replays, ParentRetention that of its
	// parent when the child was started. Neither is there if nobody has said anything.
	Retention       *RetentionPolicy `json:"retention,omitempty"`
	ParentRetention *RetentionPolicy `json:"parentRetention,omitempty"`
	// UnreadSignals is how many signals the run before it in the chain had that no decider had
	// seen: their copies are the first Signal events of this run.
	UnreadSignals int `json:"unreadSignals,omitempty"`
	// Replays names the run that this one repeats.
	Replays *ReplayOf `json:"replays,omitempty"`
	// StartMode says what began the run. A run from before there were modes has none: see
	// [WorkflowStarted.Mode].
	StartMode StartMode `json:"startMode,omitempty"`
	// Continuation says when the run is asked to continue as new. The runs that continue it have
	// the same.
	Continuation *ContinuationPolicy `json:"continuation,omitempty"`
	// Held is the hold that the run has from the one which it continues.
	Held      *ContinuationHeld `json:"held,omitempty"`
	RequestID string            `json:"requestId,omitempty"`
	Identity  string            `json:"identity,omitempty"`
}

// WorkflowTimedOut closes a run whose time is up.
type WorkflowTimedOut struct {
	TimeoutType TimeoutType `json:"timeoutType"`
	ChildPolicy ChildPolicy `json:"childPolicy,omitempty"`
}

// WorkflowTerminated closes a run by force.
type WorkflowTerminated struct {
	Reason      string      `json:"reason,omitempty"`
	Details     Payload     `json:"details,omitempty"`
	ChildPolicy ChildPolicy `json:"childPolicy,omitempty"`
	Cause       Cause       `json:"cause,omitempty"`
	RequestID   string      `json:"requestId,omitempty"`
	Identity    string      `json:"identity,omitempty"`
}

// WorkflowCancelRequested asks the decider to end the run.
type WorkflowCancelRequested struct {
	Reason                    string     `json:"reason,omitempty"`
	ExternalWorkflowExecution *Execution `json:"externalWorkflowExecution,omitempty"`
	ExternalScheduledEventID  int64      `json:"externalScheduledEventId,omitempty"`
	Cause                     Cause      `json:"cause,omitempty"`
	RequestID                 string     `json:"requestId,omitempty"`
	Identity                  string     `json:"identity,omitempty"`
}

// WorkflowPaused stops asking the decider until the run is resumed. Events still come in.
type WorkflowPaused struct {
	Cause     Cause  `json:"cause,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Details   string `json:"details,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// WorkflowResumed undoes a pause.
type WorkflowResumed struct {
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// WorkflowSuccess closes a run with its result.
type WorkflowSuccess struct {
	Result                  Payload `json:"result,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
	// UnreadSignals is how many signals no decider has seen: those that came all the time could not
	// hold up the close for ever ([DecisionReply.AllOrNothing]).
	UnreadSignals int `json:"unreadSignals,omitempty"`
}

// WorkflowFailed closes a run with the reason of its failure.
type WorkflowFailed struct {
	Reason                  string  `json:"reason,omitempty"`
	Details                 Payload `json:"details,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId,omitempty"`
	// UnreadSignals is as in [WorkflowSuccess].
	UnreadSignals int `json:"unreadSignals,omitempty"`
}

// WorkflowCanceled closes a run that gave in to a cancel request.
type WorkflowCanceled struct {
	Details                 Payload `json:"details,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
	// UnreadSignals is as in [WorkflowSuccess].
	UnreadSignals int `json:"unreadSignals,omitempty"`
}

// WorkflowContinuedAsNew closes a run and names its successor.
type WorkflowContinuedAsNew struct {
	NewExecutionRun              string            `json:"newExecutionRun"`
	Input                        Payload           `json:"input,omitempty"`
	WorkflowType                 string            `json:"workflowType"`
	WorkflowTypeVersion          string            `json:"workflowTypeVersion,omitempty"`
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	TagList                      []string          `json:"tagList,omitempty"`
	// UnreadSignals is how many signals of this run no decider has seen. The next run begins with
	// copies of them.
	UnreadSignals           int   `json:"unreadSignals,omitempty"`
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// WorkflowCloseFailed refuses a decision that would have closed the run.
type WorkflowCloseFailed struct {
	Decision DecisionType `json:"decision"`
	Cause    Cause        `json:"cause"`
	// Details says which field was wrong, or which limit was met.
	Details                 string `json:"details,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// AttributesSet changes what the run shows in lists.
type AttributesSet struct {
	Attributes              map[string]string `json:"attributes"`
	DeciderCompletedEventID int64             `json:"deciderCompletedEventId"`
}

// Marker is a note of the decider to itself.
type Marker struct {
	MarkerName              string  `json:"markerName"`
	Details                 Payload `json:"details,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// MarkerFailed refuses a marker.
type MarkerFailed struct {
	MarkerName string `json:"markerName"`
	Cause      Cause  `json:"cause"`
	// Details says which field was wrong, or which limit was met.
	Details                 string `json:"details,omitempty"`
	DeciderCompletedEventID int64  `json:"deciderCompletedEventId"`
}

// Signal is word from outside.
type Signal struct {
	SignalName                string     `json:"signalName"`
	Input                     Payload    `json:"input,omitempty"`
	ExternalWorkflowExecution *Execution `json:"externalWorkflowExecution,omitempty"`
	ExternalScheduledEventID  int64      `json:"externalScheduledEventId,omitempty"`
	RequestID                 string     `json:"requestId,omitempty"`
	// OriginRun is there in the copy of a signal: the run before it in the chain, which had the
	// signal and continued as new before a decider had seen it.
	OriginRun string `json:"originRun,omitempty"`
	// OriginEventID is the signal's event in that run.
	OriginEventID int64 `json:"originEventId,omitempty"`
}
