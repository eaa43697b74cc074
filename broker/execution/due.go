package execution

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// due is one thing that will happen at its time if nothing else does before.
type due struct {
	at   schemas.Timestamp
	rank int   // at the same instant: smaller first
	id   int64 // and then by event
	fire func(*step)
}

// NextDue is the earliest instant at which a ring would change something; 0 if there is none. Not counted: a decision
// that only waits for a decider to listen.
func (s *State) NextDue(c *Config) schemas.Timestamp {
	var next schemas.Timestamp
	s.eachDue(c, func(d due) {
		if next == 0 || d.at < next {
			next = d.at
		}
	})
	return next
}

// ring lets everything happen whose time has come, in the order of the times. A ring that comes early finds nothing.
func (st *step) ring() {
	for !st.Closed() {
		var ripe []due
		st.eachDue(st.c, func(d due) {
			if d.at <= st.now {
				ripe = append(ripe, d)
			}
		})
		if len(ripe) == 0 {
			return
		}
		slices.SortStableFunc(ripe, func(a, b due) int {
			switch {
			case a.at != b.at:
				return int(min(max(a.at-b.at, -1), 1))
			case a.rank != b.rank:
				return a.rank - b.rank
			default:
				return int(a.id - b.id)
			}
		})
		before := st.LastID
		for _, d := range ripe {
			if st.Closed() {
				return
			}
			d.fire(st)
		}
		if st.LastID == before { // only dispatches and re-asks came due
			return
		}
	}
}

func (s *State) eachDue(c *Config, yield func(due)) {
	if s.Closed() || s.Start == nil {
		return
	}
	if d := s.Start.ExecutionStartToCloseTimeout; d.Limited() {
		yield(due{at: later(s.StartBase, d), rank: 9, fire: func(st *step) {
			st.emit(&schemas.WorkflowTimedOut{TimeoutType: schemas.TimeoutStartToClose, ChildPolicy: st.Start.ChildPolicy})
			st.do(Closed{})
		}})
	}
	s.deciderDue(c, yield)
	for _, a := range s.Activities {
		a.eachDue(yield)
	}
	for id, t := range s.Timers {
		yield(due{at: t.Due(), rank: 2, id: t.ScheduledID, fire: func(st *step) {
			if st.Timers[id] == t {
				st.emit(&schemas.TimerExpired{TimerID: id, ScheduledEventID: t.ScheduledID})
				st.wake()
			}
		}})
	}
}

func (s *State) deciderDue(c *Config, yield func(due)) {
	d := &s.Decision
	if d.Started != 0 {
		if limit := s.deciderTimeout(c); limit.Limited() {
			started, scheduled := d.Started, d.StartedOf
			yield(due{at: later(d.StartedBase, limit), fire: func(st *step) {
				if st.Decision.Started == started {
					st.emit(&schemas.DeciderTimedOut{TimeoutType: schemas.TimeoutStartToClose, ScheduledEventID: scheduled, StartedEventID: started})
					st.again("it did not answer within "+limit.String(), "")
				}
			}})
		}
		return
	}
	if d.Scheduled == 0 || s.Paused != nil {
		return
	}
	if limit := s.Start.TaskScheduleToStartTimeout; limit.Limited() {
		scheduled := d.Scheduled
		yield(due{at: later(later(d.ScheduledBase, c.backoff(d.Failures)), limit), fire: func(st *step) {
			if st.Decision.Scheduled == scheduled {
				st.emit(&schemas.DeciderTimedOut{TimeoutType: schemas.TimeoutScheduleToStart, ScheduledEventID: scheduled})
				st.wake()
			}
		}})
	}
}

func (a *Activity) eachDue(yield func(due)) {
	id, o := a.ScheduledID, a.Scheduled
	timedOut := func(kind schemas.TimeoutType, retryable bool) func(*step) {
		attempt := a.Attempt
		return func(st *step) {
			if st.Activities[id] != a || a.Attempt != attempt {
				return
			}
			if retryable && st.retry(a, string(kind), a.BeatDetails) {
				return
			}
			st.emit(&schemas.ActivityTimedOut{TimeoutType: kind, ScheduledEventID: id, StartedEventID: a.Started, Details: a.BeatDetails})
			st.wake()
		}
	}
	if o.ScheduleToCloseTimeout.Limited() {
		yield(due{at: later(a.ScheduledBase, o.ScheduleToCloseTimeout), rank: 1, id: id, fire: timedOut(schemas.TimeoutScheduleToClose, false)})
	}
	if a.Started != 0 {
		if o.StartToCloseTimeout.Limited() {
			yield(due{at: later(a.StartedBase, o.StartToCloseTimeout), rank: 1, id: id, fire: timedOut(schemas.TimeoutStartToClose, true)})
		}
		if o.HeartbeatTimeout.Limited() {
			yield(due{at: later(max(a.StartedBase, a.LastBeat), o.HeartbeatTimeout), rank: 1, id: id, fire: timedOut(schemas.TimeoutHeartbeat, true)})
		}
		return
	}
	if a.NotBefore != 0 {
		yield(due{at: a.NotBefore, rank: 3, id: id, fire: func(st *step) {
			if st.Activities[id] == a && a.Started == 0 && a.NotBefore != 0 {
				a.NotBefore = 0
				st.do(Dispatch{ScheduledID: id})
			}
		}})
		return
	}
	if o.ScheduleToStartTimeout.Limited() && a.Attempt == 1 {
		yield(due{at: later(later(a.ScheduledBase, max(o.StartDelay, 0)), o.ScheduleToStartTimeout), rank: 1, id: id, fire: func(st *step) {
			if st.Activities[id] == a && a.Started == 0 {
				st.emit(&schemas.ActivityScheduledTimeout{TimeoutType: schemas.TimeoutScheduleToStart, ScheduledEventID: id})
				st.wake()
			}
		}})
	}
}

// Beat notes a heartbeat of an attempt. It writes no event: it only moves the heartbeat's deadline.
func (s *State) Beat(h *schemas.Heartbeat, now schemas.Timestamp) schemas.BeatAnswer {
	run, id, attempt, err := ParseToken(h.Token)
	if err != nil {
		return schemas.BeatAnswer{Gone: true, Reason: err.Error()}
	}
	a := s.Activities[id]
	if run != s.Run || a == nil || attempt != a.Attempt {
		return schemas.BeatAnswer{Gone: true, Reason: "the activity is closed, or another attempt is at work"}
	}
	a.LastBeat = max(a.LastBeat, now)
	a.BeatDetails = h.Details
	return schemas.BeatAnswer{CancelRequested: a.CancelRequested != 0}
}

// Undispatched returns the activities whose task must be on a list: scheduled, due, and not started.
func (s *State) Undispatched(now schemas.Timestamp) []Effect {
	var open []Effect
	for _, a := range s.OpenActivities() {
		if a.Started == 0 && a.NotBefore <= now {
			open = append(open, Dispatch{ScheduledID: a.ScheduledID})
		}
	}
	return open
}
