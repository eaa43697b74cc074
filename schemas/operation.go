package schemas

// Operation is something that a namespace did by itself, or an operator had done: the value of a message in the stream of
// operations, on the subject drover.<ns>.operation.<kind>.
type Operation struct {
	V    int           `json:"v,omitempty"`
	Kind OperationKind `json:"kind"`
	// Subject is what it is about: the id of a schedule or of an always-on workflow, or the name of a node.
	Subject string    `json:"subject,omitempty"`
	At      Timestamp `json:"at"`
	// Identity is who did it: a person, or the node.
	Identity string `json:"identity,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Slot, Count, WorkflowID and Run are what it is about, where there is one.
	Slot       Timestamp `json:"slot,omitempty"`
	Count      int64     `json:"count,omitempty"`
	WorkflowID string    `json:"workflowId,omitempty"`
	Run        string    `json:"run,omitempty"`
}

// OperationKind says what was done.
type OperationKind string

// The kinds of operations. Append-only.
const (
	OperationScheduleCreated  OperationKind = "scheduleCreated"    // a schedule was made
	OperationScheduleUpdated  OperationKind = "scheduleUpdated"    // a schedule was changed
	OperationSchedulePaused   OperationKind = "schedulePaused"     // also by a failure
	OperationScheduleResumed  OperationKind = "scheduleResumed"    // a schedule was resumed
	OperationScheduleDeleted  OperationKind = "scheduleDeleted"    // a schedule was deleted
	OperationScheduleTrigger  OperationKind = "scheduleTriggered"  // somebody triggered a schedule
	OperationScheduleBackfill OperationKind = "scheduleBackfilled" // somebody asked for slots of the past
	OperationSlotsMissed      OperationKind = "slotsMissed"        // count of them, the last one in slot
	OperationSlotRefused      OperationKind = "slotRefused"        // the start or signal of a slot was refused
	OperationSlotsOverrun     OperationKind = "slotsOverrun"       // too many waited
	OperationWindowMissed     OperationKind = "windowMissed"       // no trigger of a window came through
	OperationAlwaysAdded      OperationKind = "alwaysAdded"        // an always-on workflow was added or changed
	OperationAlwaysRemoved    OperationKind = "alwaysRemoved"      // an always-on workflow was removed
	OperationAlwaysStopped    OperationKind = "alwaysStopped"      // an always-on workflow was stopped by an operator
	OperationAlwaysStarted    OperationKind = "alwaysStarted"      // an always-on workflow was started by an operator
	OperationAlwaysRestarted  OperationKind = "alwaysRestarted"    // the monitor began the next run
	OperationAlwaysFailing    OperationKind = "alwaysFailing"      // ten failures in a row
	OperationRecycleSet       OperationKind = "recycleSet"         // the time of the daily recycle was set
	OperationRecycle          OperationKind = "recycle"            // of a node; reason is the phase
)
