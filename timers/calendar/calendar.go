package calendar

import (
	"slices"
	"time"

	"github.com/droverhq/drover/schemas"
)

// Calendar is the times of a schedule, ready to be evaluated. It does not change: any number of
// goroutines may use it.
type Calendar struct {
	zone       *time.Location
	specs      []*spec
	intervals  []interval
	at         []time.Time // sorted
	exceptions []exception
	from       time.Time // zero if there is none
	until      time.Time // no slot is at it or later
	jitter     time.Duration
	warnings   []string
}

var (
	firstInstant = schemas.Timestamp(-1 << 63).Time()
	lastInstant  = time.Date(lastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Exceptions that take away so many slots in a row are taken to take away all that follow.
const mostTaken = 20_000

// Next returns the first slot after an instant, in UTC. ok is false if there will be none.
func (c *Calendar) Next(after time.Time) (slot time.Time, ok bool) {
	slot, _, ok = c.next(after)
	return slot, ok
}

// next also tells how many slots have been taken away before it.
func (c *Calendar) next(after time.Time) (slot time.Time, taken int, ok bool) {
	if after.Before(c.from) {
		after = c.from.Add(-1)
	}
	if after.Before(firstInstant) {
		after = firstInstant
	}
	for ; taken < mostTaken; taken++ {
		slot, ok = c.scheduled(after)
		if !ok {
			return time.Time{}, taken, false
		}
		end, excepted := c.excepted(slot)
		if !excepted {
			return slot.UTC(), taken, true
		}
		after = end.Add(-1)
	}
	return time.Time{}, taken, false
}

// scheduled returns the first slot after an instant, whether or not it is taken away.
func (c *Calendar) scheduled(after time.Time) (first time.Time, ok bool) {
	if !after.Before(c.until) {
		return first, false
	}
	first = c.until
	for _, s := range c.specs {
		if slot, _, ok := s.after(c.zone, after.Unix()); ok {
			first = earlier(first, time.Unix(slot, 0))
		}
	}
	for _, i := range c.intervals {
		if slot, ok := i.after(after); ok {
			first = earlier(first, slot)
		}
	}
	n, found := slices.BinarySearchFunc(c.at, after, time.Time.Compare)
	if found {
		n++
	}
	if n < len(c.at) {
		first = earlier(first, c.at[n])
	}
	return first, first.Before(c.until)
}

// excepted tells whether a slot is taken away, and until when, not included, every other one is.
func (c *Calendar) excepted(slot time.Time) (end time.Time, ok bool) {
	if len(c.exceptions) == 0 {
		return end, false
	}
	now := stretchAt(c.zone, slot.Unix())
	w := now.wall(slot.Unix())
	for _, x := range c.exceptions {
		if until, taken := x.takes(w); taken {
			end = latest(end, time.Unix(min(now.end, int64(until)-now.offset), 0))
			ok = true
		}
	}
	return end, ok
}

// Check returns an error if no slot comes after an instant: all are past.
func (c *Calendar) Check(after time.Time) error {
	if _, ok := c.Next(after); ok {
		return nil
	}
	return schemas.Errorf(schemas.CodeInvalid, "the times have no slot after %s",
		after.UTC().Format(time.RFC3339)).
		InField("times").
		WithHint("all of them are past: look at at, at the years of calendar, and at until")
}

// Delay returns by how much later than its slot a schedule starts: at least 0, less than the
// jitter, and less than it is to the next slot. It is whole milliseconds, and always the same for
// the same schedule and slot.
func (c *Calendar) Delay(schedule string, slot time.Time) time.Duration {
	if c.jitter == 0 {
		return 0
	}
	longest := c.jitter
	if next, ok := c.Next(slot); ok {
		longest = min(longest, next.Sub(slot))
	}
	return spread(schedule, slot, longest)
}

// Warnings are sentences on what may mean something else than it seems to.
func (c *Calendar) Warnings() []string { return slices.Clone(c.warnings) }

// Zone is the zone in which the times are.
func (c *Calendar) Zone() *time.Location { return c.zone }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
