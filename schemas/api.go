package schemas

import "strings"

// StartRequest starts a workflow. Run and RequestID make it idempotent: a repeat gets the first
// answer.
type StartRequest struct {
	V                            int               `json:"v,omitempty"`
	WorkflowID                   string            `json:"workflowId,omitempty"`
	Run                          string            `json:"run,omitempty"`
	RequestID                    string            `json:"requestId,omitempty"`
	Type                         string            `json:"type"`
	TypeVersion                  string            `json:"typeVersion,omitempty"`
	Input                        Payload           `json:"input,omitempty"`
	ExecutionStartToCloseTimeout Duration          `json:"executionStartToCloseTimeout,omitempty"`
	TaskStartToCloseTimeout      Duration          `json:"taskStartToCloseTimeout,omitempty"`
	TaskScheduleToStartTimeout   Duration          `json:"taskScheduleToStartTimeout,omitempty"`
	TaskPriority                 int               `json:"taskPriority,omitempty"`
	ActivityDefaults             *ActivityDefaults `json:"activityDefaults,omitempty"`
	ChildPolicy                  ChildPolicy       `json:"childPolicy,omitempty"`
	TagList                      []string          `json:"tagList,omitempty"`
	Attributes                   map[string]string `json:"attributes,omitempty"`
	Identity                     string            `json:"identity,omitempty"`
	// IDReusePolicy says whether the id of a closed run may be used again, IDConflictPolicy what
	// happens if a run of it is open. Default to ALLOW and FAIL.
	IDReusePolicy    IDReusePolicy    `json:"idReusePolicy,omitempty"`
	IDConflictPolicy IDConflictPolicy `json:"idConflictPolicy,omitempty"`
	// StartMode says what begins the run: Manual, which is the default, Schedule or AutoStart.
	// Brokers give the other modes.
	StartMode StartMode `json:"startMode,omitempty"`
	// NotAfter is when the start is refused if it has begun nothing by then, by the server's clock.
	// A repeat of one that has begun a run is answered all the same.
	NotAfter Timestamp `json:"notAfter,omitempty"`
	// Continuation says when the run is asked to continue as new.
	Continuation *ContinuationPolicy `json:"continuation,omitempty"`
	// Signal is handed to the run that is open, or else to the one that this request starts:
	// signal-with-start.
	Signal *StartSignal `json:"signal,omitempty"`
	// Origin is filled in by brokers; in a request from outside it is dropped.
	Origin *StartOrigin `json:"origin,omitempty"`
	// Replays is filled in by the broker that carries out a replay; in a request from outside it is
	// dropped.
	Replays *ReplayOf `json:"replays,omitempty"`
	// ReplyTo is filled in by the broker that accepts the request: the requester's inbox.
	ReplyTo string `json:"replyTo,omitempty"`
	// Content is the encoding that the requester wants.
	Content string `json:"content,omitempty"`
}

// IDReusePolicy says whether a start may use the workflow id of a closed run.
type IDReusePolicy string

// The reuse policies.
const (
	ReuseAllow       IDReusePolicy = "ALLOW"
	ReuseAllowFailed IDReusePolicy = "ALLOW_FAILED_ONLY" // only if the last run did not complete
	ReuseReject      IDReusePolicy = "REJECT"
)

// IDConflictPolicy says what a start does if a run of its workflow id is open.
type IDConflictPolicy string

// The conflict policies.
const (
	ConflictFail              IDConflictPolicy = "FAIL"
	ConflictUseExisting       IDConflictPolicy = "USE_EXISTING"
	ConflictTerminateExisting IDConflictPolicy = "TERMINATE_EXISTING"
)

// StartSignal is the signal of a signal-with-start. Without a request id that of the start, or else
// its run id, stands for it.
type StartSignal struct {
	Name      string  `json:"name"`
	Input     Payload `json:"input,omitempty"`
	RequestID string  `json:"requestId,omitempty"`
}

// StartOrigin says where a start that a broker made comes from: a parent, or a run that continues
// as new.
type StartOrigin struct {
	Parent                 *Execution `json:"parent,omitempty"`
	ParentScheduledEventID int64      `json:"parentScheduledEventId,omitempty"`
	ContinuedRun           string     `json:"continuedRun,omitempty"`
	FirstRun               string     `json:"firstRun,omitempty"`
	Depth                  int        `json:"depth,omitempty"`
	SignalIDs              []string   `json:"signalIds,omitempty"`
	RequestIDs             []string   `json:"requestIds,omitempty"`
	Locks                  []HeldLock `json:"locks,omitempty"`
	// UnreadSignals is how many signals of the run which is continued come before anything else.
	UnreadSignals int `json:"unreadSignals,omitempty"`
	// Retention is that of the run which is continued, ParentRetention that of the parent.
	Retention       *RetentionPolicy `json:"retention,omitempty"`
	ParentRetention *RetentionPolicy `json:"parentRetention,omitempty"`
	// Held is the hold of the run which is continued.
	Held *ContinuationHeld `json:"held,omitempty"`
	// Probe asks what became of the start of a child, and begins nothing.
	Probe bool `json:"probe,omitempty"`
}

// StartResponse answers a start.
type StartResponse struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run"`
	// Started is false when the answer repeats that of an earlier request with the same id.
	Started bool   `json:"started"`
	Error   *Error `json:"error,omitempty"`
}

// SignalRequest signals the open run of a workflow.
type SignalRequest struct {
	V          int     `json:"v,omitempty"`
	WorkflowID string  `json:"workflowId"`
	Name       string  `json:"name"`
	Input      Payload `json:"input,omitempty"`
	RequestID  string  `json:"requestId,omitempty"`
}

// SignalResponse answers a signal: it is stored and will be in the history, or in the dead letters
// if the run closes first.
type SignalResponse struct {
	V        int    `json:"v,omitempty"`
	Run      string `json:"run,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	Error    *Error `json:"error,omitempty"`
}

// ExecutionRequest asks about one execution: describe, result, why, pause, resume, hold, release,
// cancel and terminate; or it takes a lock from one.
type ExecutionRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	// Wait bounds, for result, how long the answer may be held back until the run closes.
	Wait Duration `json:"wait,omitempty"`
	// Inline bounds, for result, how many bytes of a result or of details the answer may hold; 0
	// for no bound. So whoever waits for many runs chooses when to be sent what is large.
	Inline    int    `json:"inline,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Identity  string `json:"identity,omitempty"`
	// Chain says that a request for a run which has continued as new is meant for the run that
	// followed it.
	Chain bool `json:"chain,omitempty"`
	// Details and ChildPolicy are for terminate; the policy overrides that of the run.
	Details     Payload     `json:"details,omitempty"`
	ChildPolicy ChildPolicy `json:"childPolicy,omitempty"`
	// Lock and Scope name the lock that is taken from the run.
	Lock  string `json:"lock,omitempty"`
	Scope string `json:"scope,omitempty"`
	// Origin is filled in by brokers; in a request from outside it is dropped.
	Origin *RequestOrigin `json:"origin,omitempty"`
	// ReplyTo and Content are filled in by the broker that accepts the request, as in StartRequest.
	ReplyTo string `json:"replyTo,omitempty"`
	Content string `json:"content,omitempty"`
}

// RequestOrigin says on whose behalf a broker asks: another workflow's decision, or a child policy.
type RequestOrigin struct {
	Execution        *Execution `json:"execution,omitempty"`
	ScheduledEventID int64      `json:"scheduledEventId,omitempty"`
	Cause            Cause      `json:"cause,omitempty"`
	// FirstRun is the chain that is meant: the request is for whichever run of it is open.
	FirstRun string `json:"firstRun,omitempty"`
}

// Status is where an execution stands.
type Status string

// The statuses. Append-only.
const (
	StatusOpen           Status = "open"
	StatusPaused         Status = "paused"
	StatusCompleted      Status = "completed"
	StatusFailed         Status = "failed"
	StatusCanceled       Status = "canceled"
	StatusTerminated     Status = "terminated"
	StatusTimedOut       Status = "timedOut"
	StatusContinuedAsNew Status = "continuedAsNew"
)

// StatusClosed is, in the filters of lists, any status without open and paused. No execution has
// it.
const StatusClosed Status = "closed"

// StatusHeader is the header of a history record that begins with the status of the run after it.
// [HeaderStatus] reads that.
const StatusHeader = "Drover-Status"

// HeaderStatus returns the status in the header of a history record, which tells more after it.
func HeaderStatus(header string) Status {
	status, _, _ := strings.Cut(header, " ")
	return Status(status)
}

// Closed tells whether no event can follow.
func (s Status) Closed() bool { return s != StatusOpen && s != StatusPaused && s != "" }

// StatusOf returns the status that a closing event gives, and false for other events.
func StatusOf(t EventType) (Status, bool) {
	switch t {
	case EventWorkflowSuccess:
		return StatusCompleted, true
	case EventWorkflowFailed:
		return StatusFailed, true
	case EventWorkflowCanceled:
		return StatusCanceled, true
	case EventWorkflowTerminated:
		return StatusTerminated, true
	case EventWorkflowTimedOut:
		return StatusTimedOut, true
	case EventWorkflowContinuedAsNew:
		return StatusContinuedAsNew, true
	}
	return "", false
}

// ExecutionInfo is a line of a list.
type ExecutionInfo struct {
	WorkflowID  string            `json:"workflowId"`
	Run         string            `json:"run"`
	Type        string            `json:"type"`
	TypeVersion string            `json:"typeVersion,omitempty"`
	Status      Status            `json:"status"`
	StartedAt   Timestamp         `json:"startedAt"`
	ClosedAt    Timestamp         `json:"closedAt,omitempty"`
	Events      int64             `json:"events"`
	Tags        []string          `json:"tags,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	// StartMode says what began the run.
	StartMode StartMode `json:"startMode,omitempty"`
	// Parent is the workflow that this one is a child of.
	Parent *Execution `json:"parent,omitempty"`
	// Replays names the run that this one repeats.
	Replays *ReplayOf `json:"replays,omitempty"`
}

// OpenActivity is an activity that is not closed.
type OpenActivity struct {
	ActivityID       string    `json:"activityId"`
	Type             string    `json:"type"`
	List             string    `json:"list"`
	ScheduledEventID int64     `json:"scheduledEventId"`
	ScheduledAt      Timestamp `json:"scheduledAt"`
	StartedAt        Timestamp `json:"startedAt,omitempty"`
	Worker           string    `json:"worker,omitempty"`
	Attempt          int       `json:"attempt,omitempty"`
	Deadline         Timestamp `json:"deadline,omitempty"`
	CancelRequested  bool      `json:"cancelRequested,omitempty"`
}

// OpenTimer is a timer that has neither expired nor been canceled.
type OpenTimer struct {
	TimerID string    `json:"timerId"`
	Due     Timestamp `json:"due"`
}

// OpenChild is a child workflow that has not closed, or of which the run did not hear that it has:
// a run that has closed hears of none.
type OpenChild struct {
	WorkflowID       string    `json:"workflowId"`
	Run              string    `json:"run"`
	Type             string    `json:"type"`
	ScheduledEventID int64     `json:"scheduledEventId"`
	ScheduledAt      Timestamp `json:"scheduledAt"`
	Started          bool      `json:"started,omitempty"`
	// Policy is what was done about the child when the run closed; empty while it is open.
	Policy ChildPolicy `json:"policy,omitempty"`
}

// DescribeResponse tells all about one execution but its history.
type DescribeResponse struct {
	V              int            `json:"v,omitempty"`
	Execution      ExecutionInfo  `json:"execution"`
	Partition      int            `json:"partition"`
	Owner          string         `json:"owner,omitempty"`
	Decision       string         `json:"decision,omitempty"`
	DeciderAttempt int            `json:"deciderAttempt,omitempty"`
	Activities     []OpenActivity `json:"activities,omitempty"`
	Timers         []OpenTimer    `json:"timers,omitempty"`
	Children       []OpenChild    `json:"children,omitempty"`
	Locks          []OpenLock     `json:"locks,omitempty"`
	ReplayPoints   []ReplayPoint  `json:"replayPoints,omitempty"`
	Alarm          Timestamp      `json:"alarm,omitempty"`
	Timeout        Timestamp      `json:"timeout,omitempty"`
	PausedCause    string         `json:"pausedCause,omitempty"`
	PausedDetails  string         `json:"pausedDetails,omitempty"`
	// Held: the run is not asked to continue as new.
	Held            *ContinuationHeld `json:"held,omitempty"`
	LatestContext   Payload           `json:"latestExecutionContext,omitempty"`
	Input           Payload           `json:"input,omitempty"`
	Started         WorkflowStarted   `json:"started"`
	CancelRequested bool              `json:"cancelRequested,omitempty"`
	// EventsLeft is as in a [DecisionTask].
	EventsLeft int64 `json:"eventsLeft,omitempty"`
	// RequestIDsSince is since when the ids of signals and requests are remembered, if that is less
	// than ten minutes: there were too many. What came before and is repeated may count twice.
	RequestIDsSince Timestamp `json:"requestIdsSince,omitempty"`
	// Attempts are the runs that repeat the same run, or are it, the initial one first; none if
	// there was no replay. At most MaxReplayAttempts of them are told, those that were first.
	Attempts []ReplayAttempt `json:"attempts,omitempty"`
	// Soft: the run is purged from disk, and kept in the memory of the master.
	Soft  bool   `json:"soft,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// ResultResponse answers result. While Status is open the run has not closed within the wait; ask
// again.
type ResultResponse struct {
	V       int     `json:"v,omitempty"`
	Run     string  `json:"run"`
	Status  Status  `json:"status"`
	Result  Payload `json:"result,omitempty"`
	Reason  string  `json:"reason,omitempty"`
	Details Payload `json:"details,omitempty"`
	// NewRun is the successor of a run that continued as new.
	NewRun string `json:"newRun,omitempty"`
	// Soft: the run is purged from disk, and kept in the memory of the master.
	Soft bool `json:"soft,omitempty"`
	// Large: result and details have so many bytes, more than the request's inline, and are left
	// out. Ask again without that.
	Large int    `json:"large,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// HistoryRequest reads a page of events. With Wait it is held back until there is one after After,
// or the run has closed.
type HistoryRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	After      int64  `json:"after,omitempty"`
	// Before leaves out the events from this id on; 0 leaves out none.
	Before int64 `json:"before,omitempty"`
	// NewestFirst begins with the last of these events, and goes back.
	NewestFirst bool `json:"newestFirst,omitempty"`
	// Types leaves out events of other types; none means all.
	Types []EventType `json:"types,omitempty"`
	Limit int         `json:"limit,omitempty"`
	Wait  Duration    `json:"wait,omitempty"`
}

// HistoryResponse is a page. More says that events after it in the order asked for exist already;
// Closed that the run has ended and the page reaches its last event.
type HistoryResponse struct {
	V      int     `json:"v,omitempty"`
	Run    string  `json:"run"`
	Events []Event `json:"events"`
	// Next is the last event that was looked at, where types or the newest first are asked for: the
	// "after" of the next request, or its "before" if the newest come first. A page ends when much
	// was looked at, so it may have no events and yet not be the last.
	Next   int64 `json:"next,omitempty"`
	More   bool  `json:"more,omitempty"`
	Closed bool  `json:"closed,omitempty"`
	// ReplayedBy is, on the last page of a run that has ended, the latest run that repeats it.
	ReplayedBy string `json:"replayedBy,omitempty"`
	// Soft: the run is purged from disk, and kept in the memory of the master.
	Soft  bool   `json:"soft,omitempty"`
	Error *Error `json:"error,omitempty"`
}

// ListRequest lists executions, the latest run of each first found. Empty filters match all.
type ListRequest struct {
	V          int    `json:"v,omitempty"`
	Status     Status `json:"status,omitempty"`
	Type       string `json:"type,omitempty"`
	WorkflowID string `json:"workflowId,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
	// Tag is one that the execution bears, Parent the workflow id of its parent.
	Tag    string    `json:"tag,omitempty"`
	Parent string    `json:"parent,omitempty"`
	After  Timestamp `json:"startedAfter,omitempty"`
	Before Timestamp `json:"startedBefore,omitempty"`
	// ClosedAfter and ClosedBefore leave out what is open.
	ClosedAfter  Timestamp `json:"closedAfter,omitempty"`
	ClosedBefore Timestamp `json:"closedBefore,omitempty"`
	// TopLevel leaves out children, the inner parts of flows among them.
	TopLevel bool   `json:"topLevel,omitempty"`
	Limit    int    `json:"limit,omitempty"`
	Cursor   string `json:"cursor,omitempty"`
}

// ListResponse is a page of a list; Cursor continues it and is empty at its end. Before that a page
// may have few executions, or none: it looks for a second.
type ListResponse struct {
	V          int             `json:"v,omitempty"`
	Executions []ExecutionInfo `json:"executions"`
	Cursor     string          `json:"cursor,omitempty"`
	Error      *Error          `json:"error,omitempty"`
}

// WhyResponse explains in one sentence what an execution waits for.
type WhyResponse struct {
	V       int    `json:"v,omitempty"`
	Run     string `json:"run"`
	Status  Status `json:"status"`
	Because string `json:"because"`
	Error   *Error `json:"error,omitempty"`
}

// RetentionResponse explains how long a run is kept, and why it is still there.
type RetentionResponse struct {
	V          int       `json:"v,omitempty"`
	WorkflowID string    `json:"workflowId"`
	Run        string    `json:"run"`
	Status     Status    `json:"status"`
	ClosedAt   Timestamp `json:"closedAt,omitempty"`
	// Group are the runs that are judged together, Expression what they are judged by, Source who
	// has said so.
	Group      string `json:"group,omitempty"`
	Expression string `json:"expression,omitempty"`
	Source     string `json:"source,omitempty"`
	// Rank is the place of the run among the Count runs of the group, 1 for the one that closed
	// last.
	Rank  int `json:"rank,omitempty"`
	Count int `json:"count,omitempty"`
	// Until is when time alone ends the judgement; left out if it never does.
	Until Timestamp `json:"until,omitempty"`
	// Goes: it is to be purged as soon as it may.
	Goes bool `json:"goes,omitempty"`
	// Soft: it is purged from disk, and kept in the memory of the master.
	Soft    bool   `json:"soft,omitempty"`
	Because string `json:"because"`
	Error   *Error `json:"error,omitempty"`
}

// SoftRequest asks the master for the records of a run that is purged from disk and kept in its
// memory, those with a sequence > After; without a run the latest such run of the workflow id.
// Brokers ask it.
type SoftRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	After      uint64 `json:"after,omitempty"`
}

// SoftResponse is a page of records in the order of the history. More says that there are others
// after them.
type SoftResponse struct {
	V          int          `json:"v,omitempty"`
	WorkflowID string       `json:"workflowId"`
	Run        string       `json:"run"`
	Records    []SoftRecord `json:"records"`
	More       bool         `json:"more,omitempty"`
	Error      *Error       `json:"error,omitempty"`
}

// SoftRecord is a record as it was stored: where, when, and the bytes.
type SoftRecord struct {
	Sequence uint64    `json:"sequence"`
	Time     Timestamp `json:"time"`
	Data     []byte    `json:"data"`
}

// DeadRequest lists dead letters. With count it counts them by reason instead, and limit does not
// matter.
type DeadRequest struct {
	V      int    `json:"v,omitempty"`
	Reason string `json:"reason,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	After  uint64 `json:"after,omitempty"`
	Count  bool   `json:"count,omitempty"`
}

// DeadCount says how many dead letters there are for a reason.
type DeadCount struct {
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// DeadEntry is a stored dead letter.
type DeadEntry struct {
	Sequence uint64 `json:"sequence"`
	DeadLetter
}

// DeadResponse is a page of dead letters; After continues it and is 0 at the end. Or it is their
// counts, in the order of the reasons.
type DeadResponse struct {
	V       int         `json:"v,omitempty"`
	Letters []DeadEntry `json:"letters"`
	After   uint64      `json:"after,omitempty"`
	Counts  []DeadCount `json:"counts,omitempty"`
	Error   *Error      `json:"error,omitempty"`
}

// TaskListRequest opens a task list: its stream and consumer are made if they are missing.
type TaskListRequest struct {
	V    int    `json:"v,omitempty"`
	List string `json:"list"`
}

// TaskListResponse names the stream and the durable consumers to pull from. Consumer gives the
// tasks without priority; a worker that pulls from it alone never sees others. Consumers are all,
// in order of priority (above 0, 0, below 0): a worker asks them in that order whenever it has a
// free slot, without waiting at any but the last.
type TaskListResponse struct {
	V         int      `json:"v,omitempty"`
	Stream    string   `json:"stream"`
	Consumer  string   `json:"consumer"`
	Consumers []string `json:"consumers,omitempty"`
	Error     *Error   `json:"error,omitempty"`
}

// AckResponse says that an operator's request is in the history.
type AckResponse struct {
	V     int    `json:"v,omitempty"`
	Run   string `json:"run,omitempty"`
	Error *Error `json:"error,omitempty"`
}
