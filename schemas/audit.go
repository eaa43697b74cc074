package schemas

// MaxAudit is how many workflows one AuditRequest may name.
const MaxAudit = 64

// AuditRequest asks the owner of a partition what workflows of it wait for. It is for audits, which
// compare that with what is in the streams: the owner answers from memory, and reads what is not
// there without keeping it.
type AuditRequest struct {
	V         int `json:"v,omitempty"`
	Partition int `json:"partition"`
	// Workflows are ids, all of that partition.
	Workflows []string `json:"workflows"`
	// Runs are their runs, in the same order, as far as they are known: a run that is not in memory
	// is found sooner by its name. The answer is about the latest run, or about the one that was
	// named if that is closed.
	Runs []string `json:"runs,omitempty"`
}

// AuditResponse says how far the owner is and what the run of each workflow waits for, in the order
// of the request. If not all fit there are fewer runs than were asked for: ask for the others
// again.
type AuditResponse struct {
	V         int    `json:"v,omitempty"`
	Partition int    `json:"partition"`
	Owner     string `json:"owner"` // the node
	// Time is the owner's estimate of the server's clock, never ahead of it.
	Time Timestamp `json:"time"`
	// Recovering: the owner still repeats what the one before it may have left undone.
	Recovering bool `json:"recovering,omitempty"`
	// Inbox is the sequence of the last message of the inbox that has been read. What comes later
	// may explain what looks wrong.
	Inbox uint64 `json:"inbox"`
	// Runs are those of the workflows.
	Runs  []AuditRun `json:"runs"`
	Error *Error     `json:"error,omitempty"`
}

// Where a run stands with its decider.
const (
	DecisionScheduled  = "scheduled" // it is wanted, and nobody is asked
	DecisionStarted    = "started"
	DecisionForlorn    = "nobody listens" // who could be asked for it
	DecisionBackingOff = "backing off"
)

// AuditRun is what a run waits for.
type AuditRun struct {
	WorkflowID string `json:"workflowId"`
	// Run is empty if the workflow id has never been started.
	Run    string `json:"run,omitempty"`
	Type   string `json:"type,omitempty"`
	Status Status `json:"status,omitempty"`
	// Busy: something of it is on its way, so that it cannot be judged at this moment.
	Busy bool `json:"busy,omitempty"`
	// Unreadable says why the history cannot be read.
	Unreadable string    `json:"unreadable,omitempty"`
	StartedAt  Timestamp `json:"startedAt,omitempty"`
	// Due is the latest instant for which an alarm must be armed; left out if nothing is due.
	Due Timestamp `json:"due,omitempty"`
	// Decision is where it stands with its decider: "scheduled" (wanted, and nobody is asked),
	// "started", "nobody listens", "backing off", or left out if none is wanted.
	Decision string `json:"decision,omitempty"`
	// DecisionSince is when the decision was scheduled.
	DecisionSince Timestamp `json:"decisionSince,omitempty"`
	PausedCause   Cause     `json:"pausedCause,omitempty"`
	// PausedReason is what was said about the cause.
	PausedReason string          `json:"pausedReason,omitempty"`
	Activities   []AuditActivity `json:"activities,omitempty"`
	// Timers is how many timers are open.
	Timers int `json:"timers,omitempty"`
	// Externals is how many requests to other workflows have no answer.
	Externals int         `json:"externals,omitempty"`
	Children  []OpenChild `json:"children,omitempty"`
	// Locks are those that it holds or waits for.
	Locks []OpenLock `json:"locks,omitempty"`
	// EventsLeft is as in a [DecisionTask].
	EventsLeft int64 `json:"eventsLeft,omitempty"`
	// Timeout is when the run times out; left out if it never does.
	Timeout Timestamp `json:"timeout,omitempty"`
	// RequestIDsSince is since when the ids of signals and requests are remembered, if that is less
	// than ten minutes: there were too many. What came before and is repeated may count twice.
	RequestIDsSince Timestamp `json:"requestIdsSince,omitempty"`
}

// AuditActivity is an open activity and the token of its current attempt.
type AuditActivity struct {
	ActivityID  string    `json:"activityId"`
	Type        string    `json:"type"`
	List        string    `json:"list"`
	Token       string    `json:"token"`
	Attempt     int       `json:"attempt"`
	ScheduledAt Timestamp `json:"scheduledAt"`
	// StartedAt and Worker are left out while it waits for a worker.
	StartedAt Timestamp `json:"startedAt,omitempty"`
	Worker    string    `json:"worker,omitempty"`
	// TaskSequence is the message on the list that the attempt rests on, since its worker has it.
	// Its token may be that of an earlier attempt.
	TaskSequence uint64 `json:"taskSequence,omitempty"`
	// NotBefore is when its task is put on the list, if that is still to come.
	NotBefore Timestamp `json:"notBefore,omitempty"`
	// Deadline is the earliest at which the attempt times out; left out if it does not.
	Deadline Timestamp `json:"deadline,omitempty"`
}

// WaitsForNothing tells whether nothing is open that could move the run: only a signal, a request
// of an operator or its own timeout can.
func (r *AuditRun) WaitsForNothing() bool {
	for i := range r.Locks {
		if r.Locks[i].Fence == 0 {
			return false
		}
	}
	return r.Status == StatusOpen && !r.Busy && r.Decision == "" &&
		len(r.Activities)+len(r.Children)+r.Timers+r.Externals == 0
}
