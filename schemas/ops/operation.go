package ops

import "github.com/droverhq/drover/schemas"

// Operation is something that a namespace did by itself, or an operator had done: the value of a
// message in the stream of operations, on the subject drover.<ns>.operation.<kind>.
type Operation struct {
	V    int           `json:"v,omitempty"`
	Kind OperationKind `json:"kind"`
	// Subject is what it is about: the id of a schedule or of a workflow, or the name of a node.
	Subject string            `json:"subject,omitempty"`
	At      schemas.Timestamp `json:"at"`
	// Identity is who did it: a person, or the node.
	Identity string `json:"identity,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Slot, Count, WorkflowID and Run are what it is about, where there is one.
	Slot       schemas.Timestamp `json:"slot,omitempty"`
	Count      int64             `json:"count,omitempty"`
	WorkflowID string            `json:"workflowId,omitempty"`
	Run        string            `json:"run,omitempty"`
}

// OperationKind says what was done.
type OperationKind string

// The kinds of operations. Append-only.
const (
	OperationScheduleCreated OperationKind = "scheduleCreated"   // a schedule was made
	OperationScheduleUpdated OperationKind = "scheduleUpdated"   // a schedule was changed
	OperationSchedulePaused  OperationKind = "schedulePaused"    // also by a failure
	OperationScheduleResumed OperationKind = "scheduleResumed"   // a schedule was resumed
	OperationScheduleDeleted OperationKind = "scheduleDeleted"   // a schedule was deleted
	OperationScheduleTrigger OperationKind = "scheduleTriggered" // somebody triggered a schedule
	// somebody asked for slots of the past
	OperationScheduleBackfill OperationKind = "scheduleBackfilled"
	// count of them, the last one in slot
	OperationSlotsMissed OperationKind = "slotsMissed"
	// the start or signal of a slot was refused; the first of several for one reason
	OperationSlotRefused  OperationKind = "slotRefused"
	OperationSlotsOverrun OperationKind = "slotsOverrun" // too many waited
	// no trigger of a window came through
	OperationWindowMissed OperationKind = "windowMissed"
	// an always-on workflow was added or changed
	OperationAlwaysAdded OperationKind = "alwaysAdded"
	// an always-on workflow was removed
	OperationAlwaysRemoved OperationKind = "alwaysRemoved"
	// an always-on workflow was stopped by an operator
	OperationAlwaysStopped OperationKind = "alwaysStopped"
	// an always-on workflow was started by an operator
	OperationAlwaysStarted   OperationKind = "alwaysStarted"
	OperationAlwaysRestarted OperationKind = "alwaysRestarted" // the monitor began the next run
	OperationAlwaysFailing   OperationKind = "alwaysFailing"   // ten failures in a row
	// the time of the daily recycle was set
	OperationRecycleSet OperationKind = "recycleSet"
	OperationRecycle    OperationKind = "recycle" // of a node; reason is the phase
	// an operator had a closed run deleted; count are the runs that went with it
	OperationRunDeleted OperationKind = "runDeleted"
	// an operator began a bulk job; reason is what it does, and to which runs
	OperationBulkStarted OperationKind = "bulkStarted"
	// a row of the index of the node was not as its record, so it was built anew
	OperationIndexWrong OperationKind = "indexWrong"
)

// OperationKinds are all kinds of operations.
var OperationKinds = []OperationKind{
	OperationScheduleCreated, OperationScheduleUpdated, OperationSchedulePaused,
	OperationScheduleResumed, OperationScheduleDeleted, OperationScheduleTrigger,
	OperationScheduleBackfill, OperationSlotsMissed, OperationSlotRefused, OperationSlotsOverrun,
	OperationWindowMissed, OperationAlwaysAdded, OperationAlwaysRemoved, OperationAlwaysStopped,
	OperationAlwaysStarted, OperationAlwaysRestarted, OperationAlwaysFailing, OperationRecycleSet,
	OperationRecycle, OperationRunDeleted, OperationBulkStarted, OperationIndexWrong,
}

// OperationsRequest reads the stream of operations, the oldest first.
type OperationsRequest struct {
	V int `json:"v,omitempty"`
	// Kind is that of the operations. Defaults to all.
	Kind OperationKind `json:"kind,omitempty"`
	// After is the sequence after which the page begins: that of the answer before.
	After uint64 `json:"after,omitempty"`
	// Latest begins the page so that this many operations are left; without After only.
	Latest int `json:"latest,omitempty"`
	// Limit is how many operations the page has at most. Defaults to 100, at most 1,000.
	Limit int `json:"limit,omitempty"`
}

// OperationEntry is an operation and its place in the stream.
type OperationEntry struct {
	// Sequence is that of the message in the stream of operations.
	Sequence uint64 `json:"sequence"`
	Operation
}

// OperationsResponse is a page of operations; After continues it and is 0 at the end of the stream.
type OperationsResponse struct {
	V int `json:"v,omitempty"`
	// Operations are the page.
	Operations []OperationEntry `json:"operations"`
	// After is the sequence of the last one, if there are more.
	After uint64         `json:"after,omitempty"`
	Error *schemas.Error `json:"error,omitempty"`
}
