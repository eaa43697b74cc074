package machine_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// broker is a history and what is open in it. It takes decisions as the real one does, and lets
// things happen in any order.
type broker struct {
	t          *rapid.T
	events     []schemas.Event
	at         time.Duration // since the epoch
	activities []int64       // open, by ActivityScheduled
	timers     []*schemas.TimerScheduled
	timerIDs   []int64
	others     []other
	signals    int
	canceled   bool
	closed     bool
	scheduled  int64 // of the open decision; 0: none is wanted
}

// other is a child that has not ended, a message to another workflow without an answer, or a lock
// that is waited for.
type other struct {
	id      int64 // of the event that asked for it
	child   bool
	lock    string
	started bool
	refused schemas.Attributes // what it would be refused with
	arrived schemas.Attributes // of a message or lock
}

func newBroker(t *rapid.T) *broker {
	b := &broker{t: t}
	b.add(&schemas.WorkflowStarted{WorkflowType: "order"})
	b.want()
	return b
}

func (b *broker) add(a schemas.Attributes) int64 {
	b.at += time.Duration(rapid.IntRange(0, 3).Draw(b.t, "seconds")) * time.Second
	id := int64(len(b.events) + 1)
	b.events = append(b.events, schemas.Event{ID: id, Time: schemas.At(time.Unix(0, 0).Add(b.at)), Attributes: a})
	return id
}

// want has a decision scheduled, if none is.
func (b *broker) want() {
	if b.scheduled == 0 {
		b.scheduled = b.add(&schemas.DeciderScheduled{})
	}
}

func (b *broker) draw(what string, most int) int { return rapid.IntRange(0, most).Draw(b.t, what) }

// happens lets some things happen, each of which wants a decision.
func (b *broker) happens(most int) {
	for range b.draw("events", most) {
		switch b.draw("what", 6) {
		case 0:
			b.signals++
			b.add(&schemas.Signal{SignalName: "s", Input: schemas.Payload(fmt.Sprint(b.signals))})
		case 1:
			if b.canceled {
				continue
			}
			if b.canceled = b.draw("cancel", 5) == 0; !b.canceled {
				continue
			}
			b.add(&schemas.WorkflowCancelRequested{})
		case 2:
			if len(b.timers) == 0 {
				continue
			}
			n := b.draw("timer", len(b.timers)-1)
			b.add(&schemas.TimerExpired{TimerID: b.timers[n].TimerID, ScheduledEventID: b.timerIDs[n]})
			b.dropTimer(n)
		case 3:
			if len(b.others) == 0 || !b.answers(b.draw("other", len(b.others)-1)) {
				continue
			}
		default:
			if len(b.activities) == 0 {
				continue
			}
			b.ends(b.draw("activity", len(b.activities)-1))
		}
		b.want()
	}
}

func (b *broker) dropTimer(n int) {
	b.timers = append(b.timers[:n:n], b.timers[n+1:]...)
	b.timerIDs = append(b.timerIDs[:n:n], b.timerIDs[n+1:]...)
}

func (b *broker) ends(n int) {
	id := b.activities[n]
	b.activities = append(b.activities[:n:n], b.activities[n+1:]...)
	b.add(rapid.SampledFrom([]schemas.Attributes{
		&schemas.ActivitySuccess{ScheduledEventID: id, Result: schemas.Payload(fmt.Sprint(id))},
		&schemas.ActivityFailed{ScheduledEventID: id, Reason: "no"},
		&schemas.ActivityTimedOut{ScheduledEventID: id, TimeoutType: schemas.TimeoutHeartbeat},
	}).Draw(b.t, "end"))
}

// answers lets something happen to another workflow, and tells whether the code has to know of it.
func (b *broker) answers(n int) bool {
	o := &b.others[n]
	switch end := rapid.SampledFrom([]schemas.Attributes{
		&schemas.ChildSuccess{ScheduledEventID: o.id}, &schemas.ChildFailed{ScheduledEventID: o.id, Reason: "no"},
		&schemas.ChildCanceled{ScheduledEventID: o.id},
	}).Draw(b.t, "end of another"); {
	case !o.started && b.draw("refused", 3) == 0:
		b.add(o.refused)
	case !o.child:
		b.add(o.arrived)
	case !o.started:
		o.started = true
		b.add(&schemas.ChildStarted{ScheduledEventID: o.id})
		return b.draw("told", 1) == 0
	default:
		b.add(end)
	}
	b.others = append(b.others[:n:n], b.others[n+1:]...)
	return true
}

// start starts the decision that is wanted. Some fail, and are started anew.
func (b *broker) start() (started int64, at schemas.Timestamp) {
	for b.draw("fails", 6) == 0 {
		started = b.add(&schemas.DeciderStarted{ScheduledEventID: b.scheduled})
		b.happens(1)
		b.add(&schemas.DeciderFailed{ScheduledEventID: b.scheduled, StartedEventID: started})
		b.scheduled = b.add(&schemas.DeciderScheduled{})
	}
	started = b.add(&schemas.DeciderStarted{ScheduledEventID: b.scheduled})
	return started, b.events[started-1].Time
}

// take takes a decision. again: another one is wanted directly after it.
func (b *broker) take(started int64, decisions []schemas.Decision, again bool) {
	scheduled := b.scheduled
	b.scheduled = 0
	happened := len(b.events)
	b.happens(2) // while it was made
	if b.scheduled != 0 {
		// the real broker schedules the next decision after this one
		b.events = b.events[:len(b.events):len(b.events)]
		b.unwant(happened)
	}
	completed := b.add(&schemas.DeciderCompleted{ScheduledEventID: scheduled, StartedEventID: started})
	news := len(b.events)-1 > happened
	for _, d := range decisions {
		news = b.apply(d, completed) || news
	}
	if (news || again) && !b.closed {
		b.want()
	}
}

// unwant takes the DeciderScheduled out that happens has added.
func (b *broker) unwant(from int) {
	kept := b.events[:from:from]
	for _, e := range b.events[from:] {
		if _, ok := e.Attributes.(*schemas.DeciderScheduled); !ok {
			e.ID = int64(len(kept) + 1)
			kept = append(kept, e)
		}
	}
	b.events, b.scheduled = kept, 0
}

// apply applies one decision, and tells whether the code has to know of what came of it.
func (b *broker) apply(d schemas.Decision, completed int64) (news bool) {
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		if b.draw("refused", 9) == 0 {
			b.add(&schemas.ActivityScheduleFailed{
				ActivityID: a.ActivityID, Cause: schemas.CauseOpenActivitiesLimit,
				DeciderCompletedEventID: completed,
			})
			return true
		}
		b.activities = append(b.activities, b.add(&schemas.ActivityScheduled{
			ActivityID: a.ActivityID, ActivityType: a.ActivityType, DeciderCompletedEventID: completed,
		}))
	case *schemas.RequestCancelActivity:
		return b.cancelActivity(a.ActivityID, completed)
	case *schemas.ScheduleTimer:
		s := &schemas.TimerScheduled{TimerID: a.TimerID, DeciderCompletedEventID: completed}
		b.timerIDs = append(b.timerIDs, b.add(s))
		b.timers = append(b.timers, s)
	case *schemas.CancelTimer:
		for n, open := range b.timers {
			if open.TimerID == a.TimerID {
				b.add(&schemas.TimerCanceled{
					TimerID: a.TimerID, ScheduledEventID: b.timerIDs[n], DeciderCompletedEventID: completed,
				})
				b.dropTimer(n)
				return false
			}
		}
		b.add(&schemas.TimerCancelFailed{TimerID: a.TimerID, DeciderCompletedEventID: completed})
		return true
	case *schemas.RecordMarker:
		b.add(&schemas.Marker{MarkerName: a.MarkerName, Details: a.Details, DeciderCompletedEventID: completed})
	case *schemas.CompleteWorkflow:
		b.add(&schemas.WorkflowSuccess{Result: a.Result, DeciderCompletedEventID: completed})
		b.closed = true
	default:
		return b.applyOther(d, completed)
	}
	return false
}

// applyOther is apply for other workflows.
func (b *broker) applyOther(d schemas.Decision, completed int64) (news bool) {
	refused := b.draw("refused", 9) == 0
	switch a := d.Attributes.(type) {
	case *schemas.StartChild:
		no := &schemas.ChildStartFailed{WorkflowID: a.WorkflowID, Control: a.Control, DeciderCompletedEventID: completed}
		if refused {
			b.add(no)
			return true
		}
		no.ScheduledEventID = b.add(&schemas.ChildScheduled{
			WorkflowID: a.WorkflowID, Run: "r", Control: a.Control, DeciderCompletedEventID: completed,
		})
		b.others = append(b.others, other{id: no.ScheduledEventID, child: true, refused: no})
	case *schemas.SignalExternal:
		no := &schemas.SignalExternalFailed{WorkflowID: a.WorkflowID, Control: a.Control, DeciderCompletedEventID: completed}
		if refused {
			b.add(no)
			return true
		}
		no.ScheduledEventID = b.add(&schemas.SignalExternalScheduled{
			WorkflowID: a.WorkflowID, Control: a.Control, DeciderCompletedEventID: completed,
		})
		b.others = append(b.others, other{
			id: no.ScheduledEventID, refused: no, arrived: &schemas.ExternalSignaled{ScheduledEventID: no.ScheduledEventID},
		})
	case *schemas.CancelExternal:
		no := &schemas.CancelExternalFailed{WorkflowID: a.WorkflowID, Control: a.Control, DeciderCompletedEventID: completed}
		no.ScheduledEventID = b.add(&schemas.CancelExternalScheduled{
			WorkflowID: a.WorkflowID, Control: a.Control, DeciderCompletedEventID: completed,
		})
		b.others = append(b.others, other{
			id: no.ScheduledEventID, refused: no, arrived: &schemas.ExternalCancelRequested{ScheduledEventID: no.ScheduledEventID},
		})
	case *schemas.AcquireLock:
		if refused {
			b.add(&schemas.LockRefused{Lock: a.Lock, DeciderCompletedEventID: completed})
			return true
		}
		id := b.add(&schemas.LockRequested{Lock: a.Lock, DeciderCompletedEventID: completed})
		b.others = append(b.others, other{
			id: id, lock: a.Lock, refused: &schemas.LockRefused{Lock: a.Lock, ScheduledEventID: id},
			arrived: &schemas.LockAcquired{Lock: a.Lock, ScheduledEventID: id, Fence: uint64(id)},
		})
	case *schemas.ReleaseLock:
		b.add(&schemas.LockReleased{Lock: a.Lock, DeciderCompletedEventID: completed})
		b.others = slices.DeleteFunc(b.others, func(o other) bool { return o.lock == a.Lock })
	default:
		b.t.Fatalf("the broker does not know %s", d.Type())
	}
	return false
}

// cancelActivity ends an activity at once, as one that waits, or tells its worker.
func (b *broker) cancelActivity(id string, completed int64) (news bool) {
	for n, open := range b.activities {
		if b.events[open-1].Attributes.(*schemas.ActivityScheduled).ActivityID != id { //nolint:forcetypeassert // it is one
			continue
		}
		b.add(&schemas.ActivityCancelRequested{
			ActivityID: id, ScheduledEventID: open, DeciderCompletedEventID: completed,
		})
		if b.draw("waits", 1) == 0 {
			b.add(&schemas.ActivityCanceled{ScheduledEventID: open})
			b.activities = append(b.activities[:n:n], b.activities[n+1:]...)
			return true
		}
		return false
	}
	b.add(&schemas.ActivityCancelFailed{ActivityID: id, DeciderCompletedEventID: completed})
	return true
}
