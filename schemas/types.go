package schemas

// TypeKind is what a registered type is a type of.
type TypeKind string

// The kinds of types.
const (
	WorkflowKind TypeKind = "workflow"
	ActivityKind TypeKind = "activity"
)

// TypeStatus is where a registered type stands.
type TypeStatus string

// The statuses of a type. What runs when its type is deprecated goes on.
const (
	TypeRegistered TypeStatus = "REGISTERED"
	TypeDeprecated TypeStatus = "DEPRECATED"
)

// TypeInfo is a registered type: its name, its version and the defaults of those that use it. It does not change, but for
// its status: a change is a new version. It is the value of a key in the types bucket.
type TypeInfo struct {
	V            int        `json:"v,omitempty"`
	Kind         TypeKind   `json:"kind"`
	Name         string     `json:"name"`
	Version      string     `json:"version,omitempty"`
	Description  string     `json:"description,omitempty"`
	Status       TypeStatus `json:"status"`
	CreatedAt    Timestamp  `json:"createdAt"`
	DeprecatedAt Timestamp  `json:"deprecatedAt,omitempty"`
	// Workflow holds the defaults of a workflow type, Activity those of an activity type.
	Workflow *WorkflowTypeDefaults `json:"workflow,omitempty"`
	Activity *ActivityTypeDefaults `json:"activity,omitempty"`
}

// WorkflowTypeDefaults stand in for what a start, a child or a continuation leaves out.
type WorkflowTypeDefaults struct {
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskScheduleToStartTimeout   Duration          `json:"taskScheduleToStartTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
}

// ActivityTypeDefaults stand in for what a decision to schedule leaves out. They come before the defaults of the run.
type ActivityTypeDefaults struct {
	List                   string       `json:"list,omitempty"`
	TaskPriority           int          `json:"taskPriority,omitempty"`
	ScheduleToStartTimeout Duration     `json:"scheduleToStartTimeout,omitempty"`
	StartToCloseTimeout    Duration     `json:"startToCloseTimeout,omitempty"`
	ScheduleToCloseTimeout Duration     `json:"scheduleToCloseTimeout,omitempty"`
	HeartbeatTimeout       Duration     `json:"heartbeatTimeout,omitempty"`
	NotIdempotent          bool         `json:"notIdempotent,omitempty"`
	Retry                  *RetryPolicy `json:"retry,omitempty"`
}
