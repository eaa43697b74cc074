package schemas

// ChildReport is what the owner of a child tells its parent: that it started, that it could not, or
// how it ended. It stands in the parent's inbox.
type ChildReport struct {
	V int `json:"v,omitempty"`
	// ParentRun and ScheduledEventID name the ChildScheduled that asked for the child.
	ParentRun        string    `json:"parentRun"`
	ScheduledEventID int64     `json:"scheduledEventId"`
	Child            Execution `json:"child"`
	// Status is open for a start, and else how the child ended.
	Status Status `json:"status"`
	// Cause says why the child could not be started; Status is then empty.
	Cause Cause `json:"cause,omitempty"`
	// Final says that the refusal stands: no start of this run that was sent before can begin it
	// any more.
	Final   bool    `json:"final,omitempty"`
	Result  Payload `json:"result,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Details Payload `json:"details,omitempty"`
}

// ExternalSignal is a signal that one workflow sends to another. It stands in the target's inbox.
type ExternalSignal struct {
	V int `json:"v,omitempty"`
	// Run is the run that is meant; empty means the open one.
	Run   string  `json:"run,omitempty"`
	Name  string  `json:"name"`
	Input Payload `json:"input,omitempty"`
	// Source and ScheduledEventID name the SignalExternalScheduled; the target keeps them, so a
	// repeat is dropped.
	Source           Execution `json:"source"`
	ScheduledEventID int64     `json:"scheduledEventId"`
}

// ExternalAnswer tells a workflow what became of its signal or cancel request to another. It stands
// in the inbox of the one that sent it.
type ExternalAnswer struct {
	V int `json:"v,omitempty"`
	// SourceRun and ScheduledEventID name the event that asked.
	SourceRun        string    `json:"sourceRun"`
	ScheduledEventID int64     `json:"scheduledEventId"`
	Target           Execution `json:"target"`
	// Cause is empty if it was delivered.
	Cause Cause `json:"cause,omitempty"`
}

// ControlKind says what a worker is told.
type ControlKind string

// The control kinds.
const (
	// ControlCancel: the activity with this token is to stop; its decider has asked for that, or
	// nobody waits for it any more.
	ControlCancel ControlKind = "cancel"
	// ControlDrain: take no more work, finish what runs, hand over and leave. It is a request; the
	// answer is a [ControlAnswer].
	ControlDrain ControlKind = "drain"
	// ControlAck: an operator has looked at an unexpected shutdown; the roles may begin. It is a
	// request as well.
	ControlAck ControlKind = "ack"
	// ControlHolds asks whether the worker is at the attempt with this token. Only a worker that is
	// answers, with Holds.
	ControlHolds ControlKind = "holds"
)

// Control is what a running worker is told at once, on its control subject. It is a hint: the
// answer to a heartbeat says the same.
type Control struct {
	V      int         `json:"v,omitempty"`
	Kind   ControlKind `json:"kind"`
	Token  string      `json:"token,omitempty"`
	Reason string      `json:"reason,omitempty"`
	// Gone says of a cancel that nobody waits for the attempt any more: it has timed out, or its
	// workflow is closed.
	Gone bool `json:"gone,omitempty"`
	// Timeout bounds a drain. Defaults to what the process was started with.
	Timeout Duration `json:"timeout,omitempty"`
}

// ControlAnswer says that a process has heard what it was told.
type ControlAnswer struct {
	V      int        `json:"v,omitempty"`
	Node   string     `json:"node"` // the name of the node, or the identity of the worker
	Status NodeStatus `json:"status,omitempty"`
	Error  *Error     `json:"error,omitempty"`
	Holds  bool       `json:"holds,omitempty"` // the answer to ControlHolds
}
