package ops

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// RestartPolicy says after which ends an always-on workflow is started again.
type RestartPolicy string

// The restart policies.
const (
	RestartAlways    RestartPolicy = "always"     // after any end
	RestartOnFailure RestartPolicy = "on-failure" // unless it completed or was canceled
)

// Validate refuses what is no restart policy; empty is the default. The error names the field.
func (p RestartPolicy) Validate(field string) error {
	switch p {
	case "", RestartAlways, RestartOnFailure:
		return nil
	}
	return fmt.Errorf("%s is %q; want %s or %s", field, string(p), RestartAlways, RestartOnFailure)
}

// AlwaysOn is a workflow that is to run all the time. Its id is the workflow id of Start.
type AlwaysOn struct {
	// Start is the start of each run, but for those that a continuation begins. Run, requestId,
	// startMode, notAfter, signal and the policies of ids are the monitor's own and may not be
	// given. A run is asked to continue as new when it is an hour old or has 10,000 events, unless
	// continuation says something else.
	Start schemas.StartRequest `json:"start"`
	// Restart says after which ends it is started again. Defaults to always.
	Restart RestartPolicy `json:"restart,omitempty"`
}

// AlwaysOnRecord is an always-on workflow as it is stored: the value of the key always.<id> in the
// bucket of schedules.
type AlwaysOnRecord struct {
	V        int      `json:"v,omitempty"`
	AlwaysOn AlwaysOn `json:"alwaysOn"`
	// Incarnation tells it from a removed one of the same id. Run ids are computed from it and
	// Starts.
	Incarnation string            `json:"incarnation"`
	CreatedAt   schemas.Timestamp `json:"createdAt"`
	Identity    string            `json:"identity,omitempty"`
	// Stopped: it is kept down until it is started, with who and why.
	Stopped   bool              `json:"stopped,omitempty"`
	StoppedAt schemas.Timestamp `json:"stoppedAt,omitempty"`
	StoppedBy string            `json:"stoppedBy,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	// KeepRun: the run that was open then is left alone.
	KeepRun bool `json:"keepRun,omitempty"`
	// Terminate: that run is ended at once, and not only asked to end.
	Terminate bool `json:"terminate,omitempty"`
	// Again: it was started while a stop was ending its run, and goes on however that run ends.
	Again bool `json:"again,omitempty"`
	// Starts is how many runs were begun; the next one is computed from it.
	Starts int64 `json:"starts,omitempty"`
	// Run is the first run of the chain that is open, or was last; StartedAt when it was begun.
	Run       string            `json:"run,omitempty"`
	StartedAt schemas.Timestamp `json:"startedAt,omitempty"`
	// Found: the monitor did not begin that run. It was open under the id already.
	Found bool `json:"found,omitempty"`
	// Open: that chain has not ended as far as the monitor knows.
	Open bool `json:"open,omitempty"`
	// Status and EndReason are how the last chain ended, and EndedAt when that was heard.
	Status    schemas.Status    `json:"status,omitempty"`
	EndReason string            `json:"endReason,omitempty"`
	EndedAt   schemas.Timestamp `json:"endedAt,omitempty"`
	// Failures is how many ended badly one after the other, NotBefore when the next one is begun. A
	// refused start counts too, and a run that lived for a minute and longer than the pause before
	// it begins a new count. From ten failures on the workflow is said to be failing.
	Failures  int               `json:"failures,omitempty"`
	NotBefore schemas.Timestamp `json:"notBefore,omitempty"`
	// Refusal is why the last start was refused.
	Refusal string `json:"refusal,omitempty"`
}

// FailingAfter is how many failures in a row make an always-on workflow a failing one.
const FailingAfter = 10

// AlwaysAddRequest adds an always-on workflow. A repeat with the same contents is answered like the
// first one; other contents change what is there, from the next start on.
type AlwaysAddRequest struct {
	V        int      `json:"v,omitempty"`
	AlwaysOn AlwaysOn `json:"alwaysOn"`
	Identity string   `json:"identity,omitempty"`
}

// AlwaysRequest names an always-on workflow: alwaysShow, alwaysStop, alwaysStart and alwaysRemove.
type AlwaysRequest struct {
	V  int    `json:"v,omitempty"`
	ID string `json:"id"`
	// Terminate, for alwaysStop and alwaysRemove, ends the open run at once; else it is asked to
	// end. KeepRun leaves it alone.
	Terminate bool   `json:"terminate,omitempty"`
	KeepRun   bool   `json:"keepRun,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Identity  string `json:"identity,omitempty"`
}

// AlwaysResponse is an always-on workflow as it stands after the request; after alwaysRemove, as it
// was last.
type AlwaysResponse struct {
	V      int             `json:"v,omitempty"`
	Record *AlwaysOnRecord `json:"record,omitempty"`
	// Changed is false when the request found nothing to do, because it was carried out before.
	Changed bool           `json:"changed,omitempty"`
	Error   *schemas.Error `json:"error,omitempty"`
}

// AlwaysListRequest lists always-on workflows by their ids. Prefix is how the id begins.
type AlwaysListRequest struct {
	V      int    `json:"v,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// AlwaysListResponse is a page of always-on workflows in the order of their ids; Cursor continues
// it and is empty at its end.
type AlwaysListResponse struct {
	V        int              `json:"v,omitempty"`
	AlwaysOn []AlwaysOnRecord `json:"alwaysOn"`
	Cursor   string           `json:"cursor,omitempty"`
	Error    *schemas.Error   `json:"error,omitempty"`
}
