package ops

import "github.com/droverhq/drover/schemas"

// ActivityOnce is the activity by which a workflow asks whether it is the first of a period: its
// input is an [OnceRequest] without caller, workflow and run, and its result an [OnceResponse].
// Nodes with the role ops carry it out on the list [ServiceList].
const (
	ActivityOnce = "drover.once"
	ServiceList  = "drover"
)

// OnceRequest asks whether the caller is the first of a period: once.
type OnceRequest struct {
	V int `json:"v,omitempty"`
	// Name is what is to be done once a period: 1 to 256 bytes of text without control characters.
	Name string `json:"name"`
	// Period is hour, day, week, month, or a cron expression whose times begin periods. Defaults to
	// day.
	Period string `json:"period,omitempty"`
	// TimeZone is where days begin: an IANA name. Defaults to UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Caller tells callers apart: whoever asks again with the same one gets the same answer.
	// Defaults to a new one for each request.
	Caller string `json:"caller,omitempty"`
	// WorkflowID and Run are the workflow on whose behalf it is asked, for people.
	WorkflowID string `json:"workflowId,omitempty"`
	Run        string `json:"run,omitempty"`
	Identity   string `json:"identity,omitempty"`
}

// OnceResponse says whether the caller is the first of the period.
type OnceResponse struct {
	V int `json:"v,omitempty"`
	// First is true for exactly one caller of the period.
	First bool `json:"first"`
	// Period is the key of the period, such as 2026-11-28; Begins and Ends are its bounds.
	Period string            `json:"period"`
	Begins schemas.Timestamp `json:"begins,omitempty"`
	Ends   schemas.Timestamp `json:"ends,omitempty"`
	// By is who was first.
	By    *PeriodRecord  `json:"by,omitempty"`
	Error *schemas.Error `json:"error,omitempty"`
}

// PeriodRecord says who has a period: the value of the key period.<name>.<period> in the bucket of
// schedules; that of a schedule with a window is period.<schedule>.<incarnation>.<period>. It lives
// three periods, and at least eight days.
type PeriodRecord struct {
	V int `json:"v,omitempty"`
	// Name is what is done once a period; for a window, the id of its schedule.
	Name       string            `json:"name"`
	Period     string            `json:"period"`
	Caller     string            `json:"caller"`
	At         schemas.Timestamp `json:"at"`
	WorkflowID string            `json:"workflowId,omitempty"`
	Run        string            `json:"run,omitempty"`
	Identity   string            `json:"identity,omitempty"`
	// Slot is when the window opened, of a schedule.
	Slot schemas.Timestamp `json:"slot,omitempty"`
	// Started: the run of a schedule's window has begun, or was refused with Refusal.
	Started bool   `json:"started,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}
