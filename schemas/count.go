package schemas

// CountRequest counts executions; the filters are those of ListRequest.
type CountRequest struct {
	V            int       `json:"v,omitempty"`
	Status       Status    `json:"status,omitempty"`
	Type         string    `json:"type,omitempty"`
	WorkflowID   string    `json:"workflowId,omitempty"`
	Prefix       string    `json:"prefix,omitempty"`
	Tag          string    `json:"tag,omitempty"`
	Parent       string    `json:"parent,omitempty"`
	After        Timestamp `json:"startedAfter,omitempty"`
	Before       Timestamp `json:"startedBefore,omitempty"`
	ClosedAfter  Timestamp `json:"closedAfter,omitempty"`
	ClosedBefore Timestamp `json:"closedBefore,omitempty"`
	// TopLevel leaves out children, the inner parts of flows among them.
	TopLevel bool `json:"topLevel,omitempty"`
	// Wait bounds how long the server counts.
	Wait Duration `json:"wait,omitempty"`
}

// List is the list whose lines are counted.
func (q *CountRequest) List() *ListRequest {
	return &ListRequest{
		V: q.V, Status: q.Status, Type: q.Type, WorkflowID: q.WorkflowID, Prefix: q.Prefix,
		Tag: q.Tag, Parent: q.Parent,
		After: q.After, Before: q.Before, ClosedAfter: q.ClosedAfter, ClosedBefore: q.ClosedBefore,
		TopLevel: q.TopLevel,
	}
}

// CountResponse answers a count. Truncated says that the time was over before all was counted:
// there are at least so many.
type CountResponse struct {
	V         int    `json:"v,omitempty"`
	Count     int64  `json:"count"`
	Truncated bool   `json:"truncated,omitempty"`
	Error     *Error `json:"error,omitempty"`
}

// TaskListsRequest asks how the task lists stand.
type TaskListsRequest struct {
	V int `json:"v,omitempty"`
}

// TaskListInfo is how a task list stands. Waiting tasks and tasks being worked on are Pending and
// Working; a task whose worker died counts as Working until its lease is over.
type TaskListInfo struct {
	List    string `json:"list"`
	Pending int64  `json:"pending"`
	Working int64  `json:"working"`
	// Workers is how many workers wait for tasks; one that is busy waits for none.
	Workers int `json:"workers"`
	// OldestAt is when the oldest task that is not done was put on the list.
	OldestAt Timestamp `json:"oldestAt,omitempty"`
	// PausedUntil is when the last consumer of the list goes on that somebody has paused: until
	// then some of its tasks go to no worker.
	PausedUntil Timestamp `json:"pausedUntil,omitempty"`
	// Untaken are the subjects of tasks that no consumer of the list takes, as somebody has changed
	// one: these tasks go to no worker until one that works on the list starts, which opens the
	// list again.
	Untaken []string `json:"untaken,omitempty"`
	// GivingUp are the consumers of the list that somebody has given a limit of deliveries
	// (max_deliver): what a worker that dies had in hand goes to nobody any more. One that is
	// deleted is made anew, without a limit, and gives out again all that is not done.
	GivingUp []string `json:"givingUp,omitempty"`
	// Missing are the consumers of the list that somebody has deleted: their tasks go to no worker
	// until a server has made them anew, which it does after this answer, after the next task that
	// is put on the list, and for a worker that opens the list.
	Missing []string `json:"missing,omitempty"`
}

// TaskListsResponse holds the task lists of the namespace in the order of their names.
type TaskListsResponse struct {
	V     int            `json:"v,omitempty"`
	Lists []TaskListInfo `json:"lists"`
	Error *Error         `json:"error,omitempty"`
}

const (
	// UntakenHint is what to do about [TaskListInfo.Untaken].
	UntakenHint = "start a worker of the list again, which mends that and loses no task"
	// GivingUpHint is what to do about [TaskListInfo.GivingUp].
	GivingUpHint = "delete them with \"nats consumer rm\"; workers of the list make them anew, " +
		"and what was given up is given out again"
	// MissingHint is what to do about [TaskListInfo.Missing].
	MissingHint = "the servers make that anew; if it stays so, see their log"
)
