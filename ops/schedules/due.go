package schedules

import (
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/timers/calendar"
)

const (
	// mostMissed is how many slots that were missed are made up for.
	mostMissed = 1000
	// mostCounted bounds the count of those that are not: so long it may take.
	mostCounted = 1_000_000
	// defaultCatchUp and leastCatchUp are about how late a slot may be made up for.
	defaultCatchUp = 365 * 24 * time.Hour
	leastCatchUp   = 10 * time.Second
)

// times are the slots of a schedule.
type times struct {
	id  string
	cal *calendar.Calendar
}

// after returns the first slot after an instant, and when it is due.
func (t times) after(last time.Time) (slot, due time.Time, ok bool) {
	if slot, ok = t.cal.Next(last); !ok {
		return slot, slot, false
	}
	return slot, slot.Add(t.cal.Delay(t.id, slot)), true
}

// overdue finds which of the slots after last, due by now, are too many or too old to be made up
// for: how many they are, and the last of them. All that is not exact is n, if it is mostCounted.
func (t times) overdue(last, now time.Time, catchUp time.Duration) (n int64, upTo time.Time) {
	oldest := time.Time{}
	if catchUp >= 0 {
		oldest = now.Add(-catchUp)
	}
	latest := make([]time.Time, 0, mostMissed) // a ring of those that may be made up for
	at := 0
	for i := 0; ; i++ {
		if i == mostCounted {
			last = t.skip(last, now)
		}
		slot, due, ok := t.after(last)
		if !ok || due.After(now) {
			return min(n, mostCounted), upTo
		}
		last = slot
		switch {
		case due.Before(oldest):
			n, upTo = n+1, slot
		case len(latest) < mostMissed:
			latest = append(latest, slot)
		default:
			n, upTo = n+1, latest[at]
			latest[at] = slot
			at = (at + 1) % mostMissed
		}
	}
}

// skip returns an instant from which on there are mostMissed slots or more until now, and not many
// more; or last.
func (t times) skip(last, now time.Time) time.Time {
	for d := time.Second; d > 0; d *= 2 {
		from := now.Add(-d)
		if !from.After(last) {
			return last
		}
		at, n := from, 0
		for ; n < mostMissed; n++ {
			slot, ok := t.cal.Next(at)
			if !ok || slot.After(now) {
				break
			}
			at = slot
		}
		if n == mostMissed {
			return from
		}
	}
	return last
}

// between are the slots from an instant on and before another; at most most and one more.
func (t times) between(from, until time.Time, most int) (all []schemas.Timestamp) {
	for at := from.Add(-1); len(all) <= most; {
		slot, ok := t.cal.Next(at)
		if !ok || !slot.Before(until) {
			break
		}
		all, at = append(all, schemas.At(slot)), slot
	}
	return all
}
