package execution

import (
	"cmp"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// dueKind says what will happen.
type dueKind uint8

const (
	dueWorkflow dueKind = iota + 1
	dueDecider
	dueDecision // schedule-to-start of a decision
	dueActivity
	dueUnstarted // schedule-to-start of an activity
	dueDispatch
	dueTimer
	dueContinuation
)

// due is one thing that will happen at its time if nothing else does before. It is a plain value:
// there are as many as a run has open activities and timers, and they are looked through at every
// commit.
type due struct {
	at   schemas.Timestamp
	kind dueKind
	rank int   // at the same instant: smaller first
	id   int64 // and then by event
	// setBy is the event that set it: while its record is on its way, the time it counts from is
	// not known (P-15).
	setBy int64

	activity *Activity
	timeout  schemas.TimeoutType
	attempt  int
	timer    string
}

// eventBudget is what an event that something is due takes besides ids and details, at most.
const eventBudget = 100

// NextDue is the earliest instant at which a ring would change something; 0 if there is none. Not
// counted: a decision that only waits for a decider to listen.
func (s *State) NextDue(c *Config) schemas.Timestamp {
	var next schemas.Timestamp
	s.eachDue(c, func(d due) {
		if next == 0 || d.at < next {
			next = d.at
		}
	})
	return next
}

// alarmFired lets everything happen whose time has come, in the order of the times. A ring that
// comes early finds nothing, and neither does one for what an uncommitted event has set. What does
// not fit one record is left for the next.
func (st *step) alarmFired(uncommitted int64) {
	room := st.c.Details
	for !st.Closed() {
		var ripe []due
		st.eachDue(st.c, func(d due) {
			if d.at <= st.now && (uncommitted == 0 || d.setBy < uncommitted) {
				ripe = append(ripe, d)
			}
		})
		if len(ripe) == 0 {
			return
		}
		slices.SortStableFunc(ripe, func(a, b due) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank),
				cmp.Compare(a.id, b.id))
		})
		before := st.LastID
		for i := range ripe {
			if st.Closed() || room < 0 {
				return // the next ring is due at once
			}
			room -= eventBudget + len(ripe[i].timer)
			st.fire(&ripe[i])
		}
		if st.LastID == before { // only dispatches and re-asks came due
			return
		}
	}
}

// fire lets one thing happen, unless what happened at the same ring has overtaken it.
func (st *step) fire(d *due) {
	a := d.activity
	switch d.kind {
	case dueWorkflow:
		st.end(&schemas.WorkflowTimedOut{
			TimeoutType: schemas.TimeoutStartToClose, ChildPolicy: st.Start.ChildPolicy,
		})
	case dueDecider:
		if st.Decision.Started == d.id {
			st.emit(&schemas.DeciderTimedOut{
				TimeoutType: schemas.TimeoutStartToClose, ScheduledEventID: st.Decision.StartedOf,
				StartedEventID: d.id,
			})
			st.again("it did not answer within "+st.deciderTimeout(st.c).String(), "")
		}
	case dueDecision:
		if st.Decision.Scheduled == d.id {
			st.emit(&schemas.DeciderTimedOut{
				TimeoutType: schemas.TimeoutScheduleToStart, ScheduledEventID: d.id,
			})
			st.wake()
		}
	case dueActivity:
		if st.Activities[d.id] == a && a.Attempt == d.attempt {
			st.timeOut(a, d.timeout)
		}
	case dueUnstarted:
		if st.Activities[d.id] == a && a.Started == 0 {
			st.emit(&schemas.ActivityScheduledTimeout{
				TimeoutType: schemas.TimeoutScheduleToStart, ScheduledEventID: d.id,
			})
			st.wake()
		}
	case dueDispatch:
		if st.Activities[d.id] == a && a.Started == 0 && a.NotBefore != 0 {
			a.NotBefore = 0
			st.do(Dispatch{ScheduledID: d.id})
		}
	case dueTimer:
		if t, open := st.Timers[d.timer]; open && t.ScheduledID == d.id {
			st.emit(&schemas.TimerExpired{TimerID: d.timer, ScheduledEventID: d.id})
			st.wake()
		}
	case dueContinuation:
		st.suggest(true, false)
	}
}

// timeOut ends an attempt that took too long; schedule-to-close bounds all attempts, so it is never
// followed by another. Neither is one that began and must not run twice, whatever its retry policy:
// that is for failures which its worker reports.
func (st *step) timeOut(a *Activity, kind schemas.TimeoutType) {
	if kind == schemas.TimeoutHeartbeat {
		// its worker knows the other limits, and cannot know when this one has passed
		st.tellWorker(a, "it has missed its heartbeat", true)
	}
	// it may have done its work; nobody can tell
	unknown := a.Scheduled.NotIdempotent && a.Started != 0
	if kind != schemas.TimeoutScheduleToClose && !unknown {
		if again := st.retry(a, string(kind)); again != nil {
			again.Details = st.room(a.lastDetails())
			st.emit(again)
			return
		}
	}
	st.emit(&schemas.ActivityTimedOut{
		TimeoutType: kind, ScheduledEventID: a.ScheduledID, StartedEventID: a.Started,
		Details: st.room(a.lastDetails()),
	})
	st.wake()
}

// Delayed are the activities whose tasks wait for their time, in order: nil if there are none.
func (s *State) Delayed() (ids []int64) {
	for id, a := range s.Activities {
		if a.NotBefore != 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Dispatched takes the tasks that were to wait for dispatched, but for those that still do. That
// they are is in no history, so a run that is read again would have them dispatched once more.
func (s *State) Dispatched(waits func(*Activity) bool) {
	for _, a := range s.Activities {
		if a.NotBefore != 0 && !waits(a) {
			a.NotBefore = 0
		}
	}
}

// eachDue yields everything that has a time.
func (s *State) eachDue(c *Config, yield func(due)) {
	if s.Closed() || s.Start == nil {
		return
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		yield(due{at: s.StartBase.Add(d), kind: dueWorkflow, rank: 9, setBy: 1})
	}
	s.deciderDue(c, yield)
	for _, a := range s.Activities {
		a.eachDue(yield)
	}
	for id, t := range s.Timers {
		yield(due{
			at: t.Due(), kind: dueTimer, rank: 2, id: t.ScheduledID, setBy: t.ScheduledID,
			timer: id,
		})
	}
	if s.continuable() {
		if at, setBy, ok := s.ageDue(); ok {
			yield(due{at: at, kind: dueContinuation, rank: 8, id: setBy, setBy: setBy})
		}
	}
}

func (s *State) deciderDue(c *Config, yield func(due)) {
	d := &s.Decision
	if d.Started != 0 {
		if limit := s.deciderTimeout(c); limit.Limited() {
			yield(due{
				at: d.StartedBase.Add(limit), kind: dueDecider, id: d.Started, setBy: d.Started,
			})
		}
		return
	}
	if d.Scheduled == 0 || s.Paused != nil {
		return
	}
	if limit := s.Start.TaskScheduleToStartTimeout; limit.Limited() {
		yield(due{
			at: d.ScheduledBase.Add(c.backoff(d.Failures)).Add(limit), kind: dueDecision,
			id: d.Scheduled, setBy: d.WaitsFrom,
		})
	}
}

func (a *Activity) eachDue(yield func(due)) {
	o := a.Scheduled
	d := due{kind: dueActivity, rank: 1, id: a.ScheduledID, activity: a, attempt: a.Attempt}
	at := func(
		from schemas.Timestamp, limit schemas.Duration, setBy int64, timeout schemas.TimeoutType,
	) {
		if limit.Limited() {
			d.at, d.setBy, d.timeout = from.Add(limit), setBy, timeout
			yield(d)
		}
	}
	at(a.ScheduledBase, o.ScheduleToCloseTimeout, a.ScheduledID, schemas.TimeoutScheduleToClose)
	switch {
	case a.Started != 0:
		at(a.StartedBase, o.StartToCloseTimeout, a.Started, schemas.TimeoutStartToClose)
		at(max(a.StartedBase, a.LastBeat), o.HeartbeatTimeout, a.Started, schemas.TimeoutHeartbeat)
	case a.NotBefore != 0:
		d.at, d.kind, d.rank, d.setBy = a.NotBefore, dueDispatch, 3, a.ScheduledID
		yield(d)
	case a.Attempt == 1:
		d.kind = dueUnstarted
		at(a.ScheduledBase.Add(max(o.StartDelay, 0)), o.ScheduleToStartTimeout, a.ScheduledID,
			schemas.TimeoutScheduleToStart)
	}
}

// Beat notes a heartbeat of an attempt. It writes no event: it only moves the heartbeat's deadline.
// list is the one that the worker speaks for; empty if that is not known.
func (s *State) Beat(h *schemas.Heartbeat, list string, now schemas.Timestamp) schemas.BeatAnswer {
	run, id, attempt, err := ParseToken(h.Token)
	if err != nil {
		return schemas.BeatAnswer{Gone: true, Reason: err.Error()}
	}
	a := s.Activities[id]
	if run != s.Run || a == nil || attempt != a.Attempt {
		return schemas.BeatAnswer{
			Gone: true, Reason: "the activity is closed, or another attempt is at work",
		}
	}
	if !a.onList(list) {
		return schemas.BeatAnswer{Gone: true, Reason: "the activity is not one of list " + list}
	}
	a.LastBeat = max(a.LastBeat, now)
	if len(h.Details) > 0 {
		a.BeatDetails = h.Details
	}
	return schemas.BeatAnswer{CancelRequested: a.CancelRequested != 0}
}

// onList tells whether a worker of a list may speak for the activity. Tokens can be guessed by who
// knows the run; the subjects of a list cannot be published to without the right to.
func (a *Activity) onList(list string) bool { return list == "" || list == a.Scheduled.List }

// lastDetails are those of the last heartbeat of any attempt.
func (a *Activity) lastDetails() schemas.Payload {
	if len(a.BeatDetails) > 0 {
		return a.BeatDetails
	}
	return a.Resume
}
