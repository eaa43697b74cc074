package ops

import "github.com/droverhq/drover/schemas"

// SpanKind says what a span of a run is.
type SpanKind string

// The kinds. Signals and markers take no time.
const (
	SpanDecision SpanKind = "decision" // from when the decider is wanted until it has decided
	SpanActivity SpanKind = "activity" // with all its attempts
	SpanAttempt  SpanKind = "attempt"  // of an activity: one worker has it
	SpanTimer    SpanKind = "timer"    // until it expires or is canceled
	SpanChild    SpanKind = "child"    // until it has closed
	SpanExternal SpanKind = "external" // a signal or a cancel request to another workflow
	SpanLock     SpanKind = "lock"     // asked for, then held
	SpanState    SpanKind = "state"    // a request for a state key
	SpanPause    SpanKind = "pause"    // the decider is not asked
	SpanSignal   SpanKind = "signal"   // that has come
	SpanMarker   SpanKind = "marker"   // a note of the decider
)

// Spans are what a run does and waits for, as arrays of one length: span 3 has the fourth of each.
// Times are microseconds since the start of the run, and -1 where there is none yet.
type Spans struct {
	Kind []SpanKind `json:"kind"`
	// Name is the id of the activity or timer, the workflow id of the child or of the other
	// workflow, the lock with its scope, the key, the name of the signal or marker.
	Name []string `json:"name"`
	// Queued is when it was asked for.
	Queued []int64 `json:"queued"`
	// Start is when it began.
	Start []int64 `json:"start"`
	// End is when it ended.
	End []int64 `json:"end"`
	// Outcome is how it ended: completed, failed, timedOut, canceled, terminated, interrupted,
	// refused, expired, delivered, released, broken, resumed; empty if it did not.
	Outcome []string `json:"outcome"`
	// Event is the event with which it began.
	Event []int64 `json:"event"`
	// Of is the event with which the activity of an attempt began, else 0.
	Of []int64 `json:"of"`
}

// SpansRequest asks for the spans of a run that the events after After have begun or changed.
type SpansRequest struct {
	V          int    `json:"v,omitempty"`
	WorkflowID string `json:"workflowId"`
	Run        string `json:"run,omitempty"`
	After      int64  `json:"after,omitempty"`
}

// SpansResponse has the spans that a page of events has begun or changed. One that began before the
// page has only what the page tells of it: its kind, its event, and what changed; no name, and -1
// for other times. The end of a lock or a pause names no event: its event is 0 if it began before
// the page, and it belongs to the last span of its kind and name.
type SpansResponse struct {
	V   int    `json:"v,omitempty"`
	Run string `json:"run"`
	// Base is when the run began.
	Base schemas.Timestamp `json:"base"`
	// Spans are those of the page.
	Spans Spans `json:"spans"`
	// Next is the last event that was looked at: the "after" of the next request.
	Next int64 `json:"next"`
	More bool  `json:"more,omitempty"`
	// Closed: the run has ended and the page reaches its last event.
	Closed bool           `json:"closed,omitempty"`
	Error  *schemas.Error `json:"error,omitempty"`
}

// Add appends a span that has no times yet, and returns where it stands.
func (s *Spans) Add(kind SpanKind, name string, event, of int64) int {
	s.Kind, s.Name = append(s.Kind, kind), append(s.Name, name)
	s.Queued, s.Start, s.End = append(s.Queued, -1), append(s.Start, -1), append(s.End, -1)
	s.Outcome = append(s.Outcome, "")
	s.Event, s.Of = append(s.Event, event), append(s.Of, of)
	return len(s.Kind) - 1
}
