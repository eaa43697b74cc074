package schemas

// ChildScheduled asks for a child workflow. Its run id is minted here, so that a repeated start is
// recognised.
type ChildScheduled struct {
	WorkflowID                   string            `json:"workflowId"`
	Run                          string            `json:"run"`
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
	// Tell is the decision's.
	Tell                    bool  `json:"tell,omitempty"`
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// ChildStarted says that the child has its first event. It wakes the decider only if its
// ChildScheduled says tell.
type ChildStarted struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	WorkflowType      string    `json:"workflowType"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
}

// ChildSuccess reports a child's result.
type ChildSuccess struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	WorkflowType      string    `json:"workflowType"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
	StartedEventID    int64     `json:"startedEventId"`
	Result            Payload   `json:"result,omitempty"`
}

// ChildFailed reports a child's failure.
type ChildFailed struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	WorkflowType      string    `json:"workflowType"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
	StartedEventID    int64     `json:"startedEventId"`
	Reason            string    `json:"reason,omitempty"`
	Details           Payload   `json:"details,omitempty"`
}

// ChildTimedOut reports that a child ran out of time.
type ChildTimedOut struct {
	WorkflowExecution Execution   `json:"workflowExecution"`
	WorkflowType      string      `json:"workflowType"`
	TimeoutType       TimeoutType `json:"timeoutType"`
	ScheduledEventID  int64       `json:"scheduledEventId"`
	StartedEventID    int64       `json:"startedEventId"`
}

// ChildCanceled reports that a child gave in to a cancel request.
type ChildCanceled struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	WorkflowType      string    `json:"workflowType"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
	StartedEventID    int64     `json:"startedEventId"`
	Details           Payload   `json:"details,omitempty"`
}

// ChildTerminated reports that a child was ended by force.
type ChildTerminated struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	WorkflowType      string    `json:"workflowType"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
	StartedEventID    int64     `json:"startedEventId"`
}

// ChildStartFailed refuses a child.
type ChildStartFailed struct {
	WorkflowID   string `json:"workflowId"`
	WorkflowType string `json:"workflowType"`
	Cause        Cause  `json:"cause"`
	// Details says which field was wrong, or which limit was met.
	Details                 string  `json:"details,omitempty"`
	ScheduledEventID        int64   `json:"scheduledEventId"`
	Control                 Payload `json:"control,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// SignalExternalScheduled sends a signal to another workflow.
type SignalExternalScheduled struct {
	WorkflowID string  `json:"workflowId"`
	Run        string  `json:"run,omitempty"`
	SignalName string  `json:"signalName"`
	Input      Payload `json:"input,omitempty"`
	Control    Payload `json:"control,omitempty"`
	// Tell is the decision's.
	Tell                    bool  `json:"tell,omitempty"`
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// ExternalSignaled says that the other workflow has the signal in its history. It wakes the decider
// only if its SignalExternalScheduled says tell.
type ExternalSignaled struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
}

// SignalExternalFailed says that the signal reached nobody.
type SignalExternalFailed struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	Cause      Cause  `json:"cause"`
	// Details says which field was wrong, or which limit was met.
	Details                 string  `json:"details,omitempty"`
	ScheduledEventID        int64   `json:"scheduledEventId"`
	Control                 Payload `json:"control,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}

// CancelExternalScheduled sends a cancel request to another workflow.
type CancelExternalScheduled struct {
	WorkflowID string  `json:"workflowId"`
	Run        string  `json:"run,omitempty"`
	Control    Payload `json:"control,omitempty"`
	// Tell is the decision's.
	Tell                    bool  `json:"tell,omitempty"`
	DeciderCompletedEventID int64 `json:"deciderCompletedEventId"`
}

// ExternalCancelRequested says that the other workflow has the request in its history. It wakes the
// decider only if its CancelExternalScheduled says tell.
type ExternalCancelRequested struct {
	WorkflowExecution Execution `json:"workflowExecution"`
	ScheduledEventID  int64     `json:"scheduledEventId"`
}

// CancelExternalFailed says that the cancel request reached nobody.
type CancelExternalFailed struct {
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	Cause      Cause  `json:"cause"`
	// Details says which field was wrong, or which limit was met.
	Details                 string  `json:"details,omitempty"`
	ScheduledEventID        int64   `json:"scheduledEventId"`
	Control                 Payload `json:"control,omitempty"`
	DeciderCompletedEventID int64   `json:"deciderCompletedEventId"`
}
