package decider

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// ActivityStatus says where an activity of a run stands. The zero value means that the id was never
// scheduled. Values are append-only.
type ActivityStatus int

const (
	// ActivityScheduled waits for a worker: for the first time, or for another attempt.
	ActivityScheduled ActivityStatus = iota + 1
	// ActivityStarted runs.
	ActivityStarted
	// ActivitySucceeded is closed and has a result.
	ActivitySucceeded
	// ActivityFailed is closed and has a reason.
	ActivityFailed
	// ActivityTimedOut is closed; the reason is the timeout's type, for example START_TO_CLOSE.
	ActivityTimedOut
	// ActivityCanceled is closed on request.
	ActivityCanceled
	// ActivityRefused was never queued; the reason is the cause of the refusal, for example
	// DEFAULT_TASK_LIST_UNDEFINED.
	ActivityRefused
)

var activityStatuses = [...]string{
	"unscheduled", "scheduled", "started", "succeeded", "failed", "timed out", "canceled",
	"refused",
}

// String returns a word or two.
func (s ActivityStatus) String() string {
	if s < 0 || int(s) >= len(activityStatuses) {
		return fmt.Sprintf("ActivityStatus(%d)", int(s))
	}
	return activityStatuses[s]
}

// Open tells whether the activity is queued or runs.
func (s ActivityStatus) Open() bool { return s == ActivityScheduled || s == ActivityStarted }

// Closed tells whether the activity has ended, well or badly, or was refused.
func (s ActivityStatus) Closed() bool { return s > ActivityStarted }

// TimerStatus says where a timer of a run stands. The zero value means that the id was never armed.
// Values are append-only.
type TimerStatus int

const (
	// TimerOpen is armed.
	TimerOpen TimerStatus = iota + 1
	// TimerFired has expired.
	TimerFired
	// TimerCanceled was taken back; it will never expire.
	TimerCanceled
	// TimerRefused was never armed.
	TimerRefused
)

var timerStatuses = [...]string{"unarmed", "open", "fired", "canceled", "refused"}

// String returns a word.
func (s TimerStatus) String() string {
	if s < 0 || int(s) >= len(timerStatuses) {
		return fmt.Sprintf("TimerStatus(%d)", int(s))
	}
	return timerStatuses[s]
}

// Counts of activity events. An activity id that is scheduled again after its end, or attempted
// again, raises them.
type Counts struct{ Scheduled, Started, Closed int }

// View folds a history into what a decider asks of it most: what was started, which activities and
// children are open, how the others ended, which signals came, which decisions were refused. It
// sees what was added to it and nothing else, so over the history of a task it never shows anything
// after the task's DeciderStarted. A View belongs to one goroutine.
type View struct {
	last       int64
	started    *schemas.WorkflowStarted
	activities map[string]*activity
	byEvent    map[int64]*activity // by ActivityScheduled
	timers     map[string]TimerStatus
	signals    map[string][]schemas.Payload
	markers    map[string][]schemas.Payload
	attributes map[string]string
	cancel     *schemas.WorkflowCancelRequested
	children   children
	externals  []*External
	refusals   []Refusal
	locks      map[lockName]Lock
}

type activity struct {
	id        string
	scheduled int64 // the latest ActivityScheduled
	status    ActivityStatus
	result    schemas.Payload
	reason    string
	details   schemas.Payload
	counts    Counts
}

// NewView returns the view of a run without events.
func NewView() *View {
	return &View{
		activities: make(map[string]*activity), byEvent: make(map[int64]*activity),
		timers: make(map[string]TimerStatus), signals: make(map[string][]schemas.Payload),
		markers: make(map[string][]schemas.Payload),
	}
}

// Add folds the next event in. Events come in the order of their ids, from 1 on; one that was added
// before is ignored.
func (v *View) Add(e schemas.Event) {
	if e.ID <= v.last {
		return
	}
	v.last = e.ID
	switch a := e.Attributes.(type) {
	case *schemas.WorkflowStarted:
		v.started = a
		v.setAttributes(a.Attributes)
		v.inheritLocks(a.Locks)
	case *schemas.WorkflowCancelRequested:
		v.cancel = cmp.Or(v.cancel, a)
	case *schemas.AttributesSet:
		v.setAttributes(a.Attributes)
	case *schemas.Signal:
		v.signals[a.SignalName] = append(v.signals[a.SignalName], a.Input)
	case *schemas.Marker:
		v.markers[a.MarkerName] = append(v.markers[a.MarkerName], a.Details)
	default:
		// A refusal is folded in twice: as what became of the thing that was asked for, and as a
		// refusal.
		v.addActivity(e)
		v.addTimer(e)
		v.addChild(e)
		v.addExternal(e)
		v.addLock(e)
		v.addRefusal(e)
	}
}

func (v *View) addTimer(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.TimerScheduled:
		v.timers[a.TimerID] = TimerOpen
	case *schemas.TimerExpired:
		v.timers[a.TimerID] = TimerFired
	case *schemas.TimerCanceled:
		v.timers[a.TimerID] = TimerCanceled
	case *schemas.TimerScheduleFailed:
		if v.timers[a.TimerID] != TimerOpen {
			// else the refusal is about a second timer of an open one's name
			v.timers[a.TimerID] = TimerRefused
		}
	}
}

func (v *View) addActivity(e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.ActivityScheduled:
		act := v.named(a.ActivityID)
		act.status, act.scheduled = ActivityScheduled, e.ID
		act.result, act.reason, act.details = nil, "", nil
		act.counts.Scheduled++
		v.byEvent[e.ID] = act
	case *schemas.ActivityStarted:
		if act := v.byEvent[a.ScheduledEventID]; act != nil {
			act.status = ActivityStarted
			act.counts.Started++
		}
	case *schemas.ActivityInterrupted:
		v.retried(a.ScheduledEventID)
	case *schemas.ActivityRetryScheduled:
		v.retried(a.ScheduledEventID)
	case *schemas.ActivitySuccess:
		v.closed(a.ScheduledEventID, ActivitySucceeded, "", a.Result)
	case *schemas.ActivityFailed:
		v.closed(a.ScheduledEventID, ActivityFailed, a.Reason, a.Details)
	case *schemas.ActivityTimedOut:
		v.closed(a.ScheduledEventID, ActivityTimedOut, string(a.TimeoutType), a.Details)
	case *schemas.ActivityScheduledTimeout:
		v.closed(a.ScheduledEventID, ActivityTimedOut,
			string(cmp.Or(a.TimeoutType, schemas.TimeoutScheduleToStart)), nil)
	case *schemas.ActivityCanceled:
		v.closed(a.ScheduledEventID, ActivityCanceled, "", a.Details)
	case *schemas.ActivityScheduleFailed:
		if act := v.named(a.ActivityID); !act.status.Open() {
			act.status, act.reason = ActivityRefused, string(a.Cause)
			act.result, act.details = nil, schemas.Payload(a.Details)
		}
	}
}

func (v *View) named(id string) *activity {
	act := v.activities[id]
	if act == nil {
		act = &activity{id: id}
		v.activities[id] = act
	}
	return act
}

// retried says that an attempt is over and another will follow.
func (v *View) retried(scheduled int64) {
	if act := v.byEvent[scheduled]; act != nil {
		act.status = ActivityScheduled
	}
}

func (v *View) closed(scheduled int64, status ActivityStatus, reason string, data schemas.Payload) {
	act := v.byEvent[scheduled]
	if act == nil {
		return
	}
	delete(v.byEvent, scheduled)
	act.status, act.reason = status, reason
	if status == ActivitySucceeded {
		act.result = data
	} else {
		act.details = data
	}
	act.counts.Closed++
}

// Started returns what the run was started with, or nil before event 1.
func (v *View) Started() *schemas.WorkflowStarted { return v.started }

// Input returns the run's input.
func (v *View) Input() schemas.Payload {
	if v.started == nil {
		return nil
	}
	return v.started.Input
}

// LastID returns the id of the last event that was added; 0 if there is none.
func (v *View) LastID() int64 { return v.last }

// Activity returns where the latest activity of an id stands, its result if it succeeded, and the
// reason if it ended otherwise.
func (v *View) Activity(id string) (status ActivityStatus, result schemas.Payload, reason string) {
	act := v.activities[id]
	if act == nil {
		return 0, nil, ""
	}
	return act.status, act.result, act.reason
}

// Details returns what came with the end of an activity that did not succeed.
func (v *View) Details(id string) schemas.Payload {
	if act := v.activities[id]; act != nil {
		return act.details
	}
	return nil
}

// Open returns the ids of the open activities in the order they were scheduled.
func (v *View) Open() []string {
	var open []*activity
	for _, act := range v.activities {
		if act.status.Open() {
			open = append(open, act)
		}
	}
	slices.SortFunc(open, func(a, b *activity) int { return cmp.Compare(a.scheduled, b.scheduled) })
	ids := make([]string, len(open))
	for i, act := range open {
		ids[i] = act.id
	}
	return ids
}

// Done tells whether each of the activities has been scheduled and has ended: the join of parallel
// branches.
func (v *View) Done(ids ...string) bool {
	for _, id := range ids {
		if act := v.activities[id]; act == nil || !act.status.Closed() {
			return false
		}
	}
	return true
}

// Counts adds up the events of the given activities, or of all if none is given. A refused activity
// counts as none.
func (v *View) Counts(ids ...string) Counts {
	var sum Counts
	add := func(act *activity) {
		sum.Scheduled += act.counts.Scheduled
		sum.Started += act.counts.Started
		sum.Closed += act.counts.Closed
	}
	if len(ids) == 0 {
		for _, act := range v.activities {
			add(act)
		}
	}
	for _, id := range ids {
		if act := v.activities[id]; act != nil {
			add(act)
		}
	}
	return sum
}

// Timer returns where the latest timer of an id stands.
func (v *View) Timer(id string) TimerStatus { return v.timers[id] }

// Signals returns the inputs of the signals of a name, in the order they came.
func (v *View) Signals(name string) []schemas.Payload { return v.signals[name] }

// Markers returns the details of the markers of a name, in the order they were written.
func (v *View) Markers(name string) []schemas.Payload { return v.markers[name] }

// CancelRequested tells whether the run was asked to end.
func (v *View) CancelRequested() bool { return v.cancel != nil }

// CancelRequest returns the first request that the run end, or nil: its Reason, and who wants it.
// That is a client's Identity, or the ExternalWorkflowExecution whose decider has asked; with the
// Cause [schemas.CauseChildPolicyApplied] it is the parent, which was ended by force.
func (v *View) CancelRequest() *schemas.WorkflowCancelRequested { return v.cancel }

// Attributes returns what the run shows in lists: what it was started with, as its deciders have
// changed it.
func (v *View) Attributes() map[string]string { return maps.Clone(v.attributes) }

func (v *View) setAttributes(changes map[string]string) {
	for name, value := range changes {
		if v.attributes == nil {
			v.attributes = make(map[string]string)
		}
		v.attributes[name] = value
		if value == "" {
			delete(v.attributes, name)
		}
	}
}
