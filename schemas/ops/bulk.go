package ops

import "github.com/droverhq/drover/schemas"

// Names of bulk jobs. A job is a run of the type [TypeBulk], whose workflow id is that of the job.
// Nodes with the role ops decide it, and carry out its activities on the list [BulkList].
const (
	TypeBulk           = "drover.bulk"
	ActivityBulkFreeze = "drover.bulk.freeze"
	ActivityBulkAct    = "drover.bulk.act"
	BulkList           = "drover-ops"
	// SignalRate is the signal that changes the rate of a job: its input is a number.
	SignalRate = "rate"
)

// Bounds of a job.
const (
	DefaultBulkRate = 200
	MaxBulkRate     = 10_000
	MaxBulkRuns     = 1_000_000
	MaxBulkText     = 16 << 10 // bytes of the query, and of the input of a signal
)

// BulkAction is what is done to each run.
type BulkAction string

// The actions. Append-only.
const (
	BulkCancel    BulkAction = "cancel"    // the decider is asked to end it
	BulkTerminate BulkAction = "terminate" // it ends without asking
	BulkSignal    BulkAction = "signal"    // the workflow is signaled, if the run is still open
	BulkPause     BulkAction = "pause"     // its decider is not asked any more
	BulkResume    BulkAction = "resume"    // a pause is undone
	BulkReplay    BulkAction = "replay"    // a new run repeats it, if it is the latest of its id
	BulkDelete    BulkAction = "delete"    // it is purged, once it has closed
)

// BulkActions are all actions.
var BulkActions = []BulkAction{
	BulkCancel, BulkTerminate, BulkSignal, BulkPause, BulkResume, BulkReplay, BulkDelete,
}

// BulkRequest has one thing done to all runs that a query finds: bulk.
type BulkRequest struct {
	V int `json:"v,omitempty"`
	// Job is the workflow id of the job, a new one: bulk- and a ULID. A repeat of the request finds
	// the job that it began.
	Job string `json:"job"`
	// Action is what is done to each run.
	Action BulkAction `json:"action"`
	// Query is which runs are meant, as of query. It is asked once, at the beginning.
	Query string `json:"query"`
	// Filter is another condition that must hold. Defaults to none.
	Filter string `json:"filter,omitempty"`
	// Rate is how many runs a second are acted on, at most 10,000. Defaults to 200.
	Rate   int    `json:"rate,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Name and Input are those of a signal.
	Name  string          `json:"name,omitempty"`
	Input schemas.Payload `json:"input,omitempty"`
	// From is where a replay begins, as of [schemas.ReplayRequest].
	From     string `json:"from,omitempty"`
	Identity string `json:"identity,omitempty"`
}

// BulkResponse names the run of a job.
type BulkResponse struct {
	V int `json:"v,omitempty"`
	// Job is that of the request.
	Job   string         `json:"job"`
	Run   string         `json:"run,omitempty"`
	Error *schemas.Error `json:"error,omitempty"`
}

// BulkState is how far a job is: the context of its run, and its result.
type BulkState struct {
	V int `json:"v,omitempty"`
	// Action is what is done to each run.
	Action BulkAction `json:"action"`
	// Found: the query was asked.
	Found bool `json:"found"`
	// Runs is how many it has found.
	Runs int `json:"runs"`
	// Done is how many of them were acted on.
	Done int `json:"done"`
	// Nothing is how many needed nothing, or were gone.
	Nothing int `json:"nothing"`
	// Refused is how many were refused.
	Refused int `json:"refused"`
	// Left is how many are left.
	Left int `json:"left"`
	// Rate is how many a second are acted on.
	Rate int `json:"rate"`
	// Codes are the refusals by their codes.
	Codes []BulkCode `json:"codes,omitempty"`
	// Refusals are the first ten.
	Refusals []BulkRefusal `json:"refusals,omitempty"`
	// Open is the activity that is under way.
	Open string `json:"open,omitempty"`
	// Canceling: the job ends after that.
	Canceling bool `json:"canceling,omitempty"`
}

// BulkCode is how many runs were refused with a code.
type BulkCode struct {
	Code  schemas.Code `json:"code"`
	Count int          `json:"count"`
}

// BulkRefusal is one run that was refused.
type BulkRefusal struct {
	WorkflowID string       `json:"workflowId"`
	Run        string       `json:"run"`
	Code       schemas.Code `json:"code"`
	Message    string       `json:"message"`
}

// BulkRecord is a job that is to be carried out: the value of the key bulk.<job> in the bucket of
// schedules, until its run has closed. Nothing is done for a run without one, so that a job is
// begun by the verb bulk only.
type BulkRecord struct {
	V int `json:"v,omitempty"`
	// Request is that of bulk.
	Request BulkRequest       `json:"request"`
	At      schemas.Timestamp `json:"at"`
	// Frozen: the query was asked.
	Frozen bool `json:"frozen,omitempty"`
	// Runs is how many it has found.
	Runs int `json:"runs,omitempty"`
	// Pages hold their ids, 1,000 each.
	Pages []schemas.PayloadRef `json:"pages,omitempty"`
}
