package windows

import (
	"cmp"
	"time"

	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	// unmarked is how long a key may be without a mark before somebody else starts the run.
	unmarked = 10 * time.Second
	// after is how long after the end of a window it is looked at: what was begun at its last
	// instant has its key by then.
	after = 15 * time.Second
)

// entry is a schedule with a window, as this node knows it.
type entry struct {
	rec *ops.ScheduleRecord
	win *calendar.Window
	// lastSlot is the opening of the last window that the state of the schedule counts; the zero
	// time is none.
	lastSlot time.Time
	// left is how many windows may still start a run; negative is no limit.
	left int64
	// seen is until when triggers were seen. A node sees those that come while it lives.
	seen time.Time
	// due is the latest trigger that was seen.
	due calendar.Trigger
}

// step is something to do for a schedule. At most one of its fields is set.
type step struct {
	// begin the window of this trigger: create its key, and start the run.
	begin *calendar.Trigger
	// settle a window of which the key is marked, and the state does not count it.
	settle *calendar.Trigger
	// missed is the latest window of which no trigger came through; before it are as many others of
	// which no key would be left.
	missed *calendar.Trigger
	before int64
}

// plan says what is to be done for a schedule at a time, and when to ask again at the latest; the
// zero time is never. known returns the key of a period, or nil.
func (e *entry) plan(
	now time.Time, known func(period string) *ops.PeriodRecord,
) (steps []step, wake time.Time) {
	e.see(now)
	if t, ok := e.win.Next(now); ok {
		wake = t.At
	}
	if e.due.Opens.After(e.lastSlot) && now.Before(e.due.Closes) && e.may(now) &&
		known(e.due.Period) == nil {
		due := e.due
		steps = append(steps, step{begin: &due})
	}
	s, look := e.ended(now, known)
	if s != nil {
		steps = append(steps, *s)
	}
	if wake.IsZero() || !look.IsZero() && look.Before(wake) {
		wake = look
	}
	return steps, wake
}

// see notes the latest trigger since the last look. Those before the schedule was made, or its
// times were changed, are none.
func (e *entry) see(now time.Time) {
	from := later(e.seen, e.rec.Since.Time().Add(-1))
	e.seen = now
	// A window that is open now has had a trigger no longer ago than their distance.
	t, ok := e.win.Next(later(from, now.Add(-every(e.rec.Schedule.Window))))
	for ; ok && !t.At.After(now); t, ok = e.win.Next(t.At) {
		e.due = t
	}
}

// may tells whether the schedule does anything at all.
func (e *entry) may(now time.Time) bool { return e.left != 0 && !e.paused(now) }

func (e *entry) paused(now time.Time) bool {
	s := &e.rec.Schedule
	return s.Paused && (s.PausedUntil == 0 || now.Before(s.PausedUntil.Time()))
}

// ended looks at the windows that have had their run or have ended, and that the state does not
// count. It returns what to do first, and when the next window is to be looked at.
func (e *entry) ended(
	now time.Time, known func(period string) *ops.PeriodRecord,
) (first *step, look time.Time) {
	if e.left == 0 {
		return nil, time.Time{}
	}
	missed := step{}
	// Triggers of the window that counts already are passed over.
	for t, ok := e.win.Next(later(e.lastSlot, e.rec.Since.Time().Add(-1))); ok; t, ok = e.win.Next(t.Closes.Add(-1)) {
		if !t.Opens.After(e.lastSlot) {
			continue
		}
		k := known(t.Period)
		if now.Before(t.Closes.Add(after)) && (k == nil || !k.Started) {
			if missed.missed != nil {
				return &missed, t.Closes.Add(after)
			}
			return nil, t.Closes.Add(after)
		}
		old := now.Sub(t.Closes) >= leastLife // no key may be left of it
		switch {
		case k == nil && old && missed.missed != nil:
			missed.before++
			missed.missed = &t
		case k == nil && missed.missed == nil:
			missed.missed = &t
			if !old {
				return &missed, now
			}
		case missed.missed != nil: // what was missed before is told first
			return &missed, now
		case k.Started:
			return &step{settle: &t}, now
		default:
			return nil, now.Add(unmarked) // it is mended before anything after it is settled
		}
	}
	if missed.missed != nil {
		return &missed, now
	}
	return nil, time.Time{}
}

// every is the distance of the triggers of a window.
func every(w *ops.ScheduleWindow) time.Duration {
	return cmp.Or(w.Every.Std(), min(5*time.Minute, w.Length.Std()))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
