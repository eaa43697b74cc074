package execution

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// State is the fold of a history. Its exported fields are what a snapshot holds.
type State struct {
	WorkflowID string                   `json:"workflowId"`
	Run        string                   `json:"run"`
	Start      *schemas.WorkflowStarted `json:"start"`
	// StartedAt is the time of the WorkflowStarted, which is what everybody is shown; the timeout
	// counts from StartBase.
	StartedAt schemas.Timestamp       `json:"startedAt,omitempty"`
	StartBase schemas.Timestamp       `json:"startBase"`
	LastID    int64                   `json:"lastId"`
	LastTime  schemas.Timestamp       `json:"lastTime"`
	Status    schemas.Status          `json:"status"`
	Close     *schemas.Event          `json:"close,omitempty"`
	Paused    *schemas.WorkflowPaused `json:"paused,omitempty"`

	Decision   Decision             `json:"decision"`
	Activities map[int64]*Activity  `json:"activities,omitempty"`
	Timers     map[string]Timer     `json:"timers,omitempty"`
	Context    schemas.Payload      `json:"context,omitempty"`
	Base       schemas.DecisionBase `json:"base"`
	Attributes map[string]string    `json:"attributes,omitempty"`

	// Children and Externals are what the run has asked of other workflows and has no last answer
	// to. They outlive its close: what was decided is carried out.
	Children  map[int64]*ChildRun       `json:"children,omitempty"`
	Externals map[int64]*ExternalAction `json:"externals,omitempty"`

	// Locks are those that the run holds or waits for, by their keys. Of a run that continued as
	// new they are what the next run has from it.
	Locks map[string]*Lock `json:"locks,omitempty"`

	// Requests are those for state keys that have no answer, by their events.
	Requests map[int64]*StateRequest `json:"stateRequests,omitempty"`

	// ReplayPoints are those that hold, the oldest first; one that is set again is the youngest.
	// They outlive the close.
	ReplayPoints []schemas.ReplayPoint `json:"replayPoints,omitempty"`
	// Retention is what the run has said of how long it is kept; nil if nothing. See
	// [State.Keeping].
	Retention *schemas.RetentionPolicy `json:"retention,omitempty"`

	// Copied is how many of the unread signals of the run before it this one has.
	Copied int `json:"copied,omitempty"`

	// Continuing is what the history tells of asking the run to continue as new.
	Continuing Continuing `json:"continuing"`

	CancelRequested bool `json:"cancelRequested,omitempty"`
	// SignalIDs are the request ids of the latest signals: a repeat of one of them is dropped.
	// Those that another workflow has sent, and its cancel requests, are remembered by its run and
	// event (P-6). A continued run begins with them.
	SignalIDs []string `json:"signalIds,omitempty"`
	// Lookalikes are the latest ids that people gave in the form of those of workflows. See
	// [State.ReceivedFromWorkflows].
	Lookalikes []string `json:"lookalikes,omitempty"`
	// RequestIDs are those of the latest requests of operators. A continued run begins with them: a
	// request for a chain that one run has carried out may be repeated when another one is open
	// (P-5).
	RequestIDs []string `json:"requestIds,omitempty"`

	activityIDs map[string]int64 // of open activities; rebuilt after decoding
}

// Decision is where the run stands with its decider.
type Decision struct {
	// Scheduled is the pending DeciderScheduled, 0 if none. It can be taken since ScheduledBase,
	// the time of event WaitsFrom: its own, or that of the end of the decider or of the pause that
	// it had to wait for. Its backoff and its schedule-to-start timeout count from there, or a task
	// would be late before anybody could take it.
	Scheduled     int64             `json:"scheduled,omitempty"`
	WaitsFrom     int64             `json:"waitsFrom,omitempty"`
	ScheduledBase schemas.Timestamp `json:"scheduledBase,omitempty"`
	// Started is the open DeciderStarted, 0 if none, and StartedOf the DeciderScheduled it took.
	Started     int64             `json:"started,omitempty"`
	StartedOf   int64             `json:"startedOf,omitempty"`
	StartedBase schemas.Timestamp `json:"startedBase,omitempty"`
	// Previous is the DeciderStarted of the last completed decision: windows begin after it.
	Previous int64 `json:"previous,omitempty"`
	// Failures counts timeouts, failures and decisions of which everything was refused, since the
	// last other decision.
	Failures int `json:"failures,omitempty"`
	// Mismatches are the latest failures in a row for which the decider's code does not do what the
	// history says.
	Mismatches int `json:"mismatches,omitempty"`
	// Earlier is what Failures was before the last completed decision. Accepted says that some of
	// that was carried out, and Refusal what of it was refused first, and why, if nothing was.
	Earlier  int    `json:"earlier,omitempty"`
	Accepted bool   `json:"accepted,omitempty"`
	Refusal  string `json:"refusal,omitempty"`
	// Signals counts the signals after the last DeciderStarted, which no decider has seen; Others
	// says that another waking event is after it.
	Signals int  `json:"signals,omitempty"`
	Others  bool `json:"others,omitempty"`
	// Held counts the continuations that were refused since something came up, and no decider that
	// completed has seen all; Undone counts the replies of which nothing stood for that reason.
	Held   int `json:"held,omitempty"`
	Undone int `json:"undone,omitempty"`
	// Woken says that a waking event came while the run was paused and no decider has started
	// since.
	Woken bool `json:"woken,omitempty"`
}

// Activity is an open activity.
type Activity struct {
	ScheduledID   int64                      `json:"scheduledId"`
	Scheduled     *schemas.ActivityScheduled `json:"scheduled"`
	ScheduledBase schemas.Timestamp          `json:"scheduledBase"`
	// Attempt is the current one, from 1. Started is its ActivityStarted, 0 while it waits for a
	// worker.
	Attempt      int               `json:"attempt"`
	Started      int64             `json:"started,omitempty"`
	StartedBase  schemas.Timestamp `json:"startedBase,omitempty"`
	Worker       string            `json:"worker,omitempty"`
	TaskSequence uint64            `json:"taskSequence,omitempty"`
	Nonce        string            `json:"nonce,omitempty"`
	// Offered: the worker has no message of the task, and so no lease.
	Offered bool `json:"offered,omitempty"`
	// Former are the nonces of the latest attempts that were interrupted.
	Former []string `json:"former,omitempty"`
	// Interrupted is how many attempts were interrupted, which are none of those that a retry
	// policy counts. Interruptions is how many of them count, in a row, and Losses are the latest
	// of these.
	Interrupted   int    `json:"interrupted,omitempty"`
	Interruptions int    `json:"interruptions,omitempty"`
	Losses        []Loss `json:"losses,omitempty"`
	// NotBefore delays the dispatch of the current attempt; 0 once it is due or was never delayed.
	NotBefore       schemas.Timestamp `json:"notBefore,omitempty"`
	CancelRequested int64             `json:"cancelRequested,omitempty"`
	// Resume are the heartbeat details of the attempt before.
	Resume schemas.Payload `json:"resume,omitempty"`

	// LastBeat and BeatDetails come from heartbeats, which write no event.
	LastBeat    schemas.Timestamp `json:"-"`
	BeatDetails schemas.Payload   `json:"-"`
}

// Loss is an attempt whose worker was lost.
type Loss struct {
	Attempt int               `json:"attempt"`
	Worker  string            `json:"worker,omitempty"`
	Began   schemas.Timestamp `json:"began,omitempty"`
	Missed  schemas.Timestamp `json:"missed"`
}

// ChildRun is a child that has not closed. Started is its ChildStarted, 0 while nothing was heard
// of it.
type ChildRun struct {
	ScheduledID int64                   `json:"scheduledId"`
	Scheduled   *schemas.ChildScheduled `json:"scheduled"`
	At          schemas.Timestamp       `json:"at"`
	Started     int64                   `json:"started,omitempty"`
}

// ExternalAction is an unanswered signal or cancel request to another workflow; one of the two is
// set.
type ExternalAction struct {
	ScheduledID int64                            `json:"scheduledId"`
	Signal      *schemas.SignalExternalScheduled `json:"signal,omitempty"`
	Cancel      *schemas.CancelExternalScheduled `json:"cancel,omitempty"`
}

// Timer is an open timer.
type Timer struct {
	ScheduledID int64             `json:"scheduledId"`
	Base        schemas.Timestamp `json:"base"`
	After       schemas.Duration  `json:"after"`
}

// Due is when the timer expires.
func (t Timer) Due() schemas.Timestamp { return t.Base.Add(t.After) }

// rememberedSignals and rememberedRequests bound SignalIDs and RequestIDs: a repeat comes from a
// sender that got no answer, so it comes soon. What a busy run forgets sooner than in ten minutes
// its owner finds in the history (package broker).
const (
	rememberedSignals  = 1000
	rememberedRequests = 100
)

// FirstRun is the first run of the chain that this one belongs to.
func (s *State) FirstRun() string { return cmp.Or(s.Start.FirstExecutionRun, s.Run) }

// is tells whether a request that names a run, or a chain by its first one, means this run. Naming
// none means any.
func (s *State) is(run, firstRun string) bool {
	return run == "" && firstRun == "" || run != "" && run == s.Run ||
		firstRun != "" && firstRun == s.FirstRun()
}

// New returns the state of a run that has no event yet.
func New(workflowID, run string) *State {
	return &State{WorkflowID: workflowID, Run: run}
}

// Snapshot encodes the state.
func (s *State) Snapshot() ([]byte, error) { return schemas.Marshal(s) }

// Restore decodes a snapshot. It fails if b is none, or one with holes.
func Restore(b []byte) (*State, error) {
	s := &State{}
	if err := schemas.Unmarshal(b, s); err != nil {
		return nil, err
	}
	if s.Start == nil && s.LastID > 0 {
		return nil, fmt.Errorf("snapshot: %w: %d events without a start",
			schemas.ErrMalformed, s.LastID)
	}
	if s.StartedAt == 0 { // an older one
		s.StartedAt = s.StartBase
	}
	for id, a := range s.Activities {
		if a == nil || a.Scheduled == nil {
			return nil, fmt.Errorf("snapshot: %w: activity %d is empty", schemas.ErrMalformed, id)
		}
		s.remember(a.Scheduled.ActivityID, id)
	}
	for id, t := range s.Timers {
		if t.ScheduledID == 0 {
			return nil, fmt.Errorf("snapshot: %w: timer %q is empty", schemas.ErrMalformed, id)
		}
	}
	for id, c := range s.Children {
		if c == nil || c.Scheduled == nil {
			return nil, fmt.Errorf("snapshot: %w: child %d is empty", schemas.ErrMalformed, id)
		}
	}
	for key, l := range s.Locks {
		if l == nil || l.Key() != key {
			return nil, fmt.Errorf("snapshot: %w: lock %q is empty", schemas.ErrMalformed, key)
		}
	}
	for id, q := range s.Requests {
		if q == nil || q.Request == nil || q.EventID != id {
			return nil, fmt.Errorf("snapshot: %w: state request %d is empty",
				schemas.ErrMalformed, id)
		}
	}
	for id, x := range s.Externals {
		if x == nil || (x.Signal == nil) == (x.Cancel == nil) {
			return nil, fmt.Errorf("snapshot: %w: external action %d is empty",
				schemas.ErrMalformed, id)
		}
	}
	return s, nil
}

// Closed tells whether no event can follow.
func (s *State) Closed() bool { return s.Status.Closed() }

// ActivityByID returns the open activity of an activity id.
func (s *State) ActivityByID(id string) *Activity { return s.Activities[s.activityIDs[id]] }

// OpenActivities returns the open activities in the order they were scheduled.
func (s *State) OpenActivities() []*Activity {
	return slices.SortedFunc(maps.Values(s.Activities),
		func(a, b *Activity) int { return int(a.ScheduledID - b.ScheduledID) })
}

func (s *State) remember(activityID string, scheduledID int64) {
	if s.activityIDs == nil {
		s.activityIDs = make(map[string]int64)
	}
	s.activityIDs[activityID] = scheduledID
}

func (s *State) forget(scheduledID int64) {
	if a := s.Activities[scheduledID]; a != nil {
		delete(s.activityIDs, a.Scheduled.ActivityID)
		delete(s.Activities, scheduledID)
	}
}

// Rebase moves everything that the events from first on have set to count from the server's time of
// their record.
func (s *State) Rebase(first int64, at schemas.Timestamp) {
	if first <= 1 {
		s.StartBase = at
	}
	d := &s.Decision
	if d.Scheduled != 0 && d.WaitsFrom >= first {
		d.ScheduledBase = at
	}
	if d.Started >= first {
		d.StartedBase = at
	}
	if s.Continuing.AgeFrom >= first {
		s.Continuing.AgeBase = at
	}
	for _, a := range s.Activities {
		if a.ScheduledID >= first {
			a.ScheduledBase = at
			if a.NotBefore != 0 && a.Attempt == 1 {
				// the start delay; a retry names its instant in its event
				a.NotBefore = at.Add(a.Scheduled.StartDelay)
			}
		}
		if a.Started >= first {
			a.StartedBase = at
		}
	}
	for id, t := range s.Timers {
		if t.ScheduledID >= first {
			t.Base = at
			s.Timers[id] = t
		}
	}
}
