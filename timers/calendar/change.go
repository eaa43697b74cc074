package calendar

import (
	"math"
	"time"
)

// stretch is a time in which a zone does not change its offset, or a part of it. Instants are Unix
// seconds.
type stretch struct {
	start, end int64 // end is not in it
	offset     int64 // the wall clock shows instant + offset
}

// stretchAt returns the stretch of an instant. [time.Time.ZoneBounds] is right for changes that a
// zone lists. For those that follow from its rule it divides years at their ends, ends leap years
// a day early, and may say a start before the last change that is listed.
func stretchAt(zone *time.Location, instant int64) stretch {
	t := time.Unix(instant, 0).In(zone)
	start, end := t.ZoneBounds()
	s := stretch{start: math.MinInt64, end: math.MaxInt64, offset: offsetAt(zone, instant)}
	if !start.IsZero() {
		s.start = start.Unix()
		if offsetAt(zone, s.start) != s.offset {
			s.start = changeBetween(zone, s.start, instant)
		}
	}
	if !end.IsZero() {
		s.end = end.Unix()
		if s.end <= instant {
			s.end = (floorDiv(instant, day) + 1) * day // the last day of a leap year
		}
	}
	return s
}

func offsetAt(zone *time.Location, instant int64) int64 {
	_, offset := time.Unix(instant, 0).In(zone).Zone()
	return int64(offset)
}

// changeBetween returns the first instant with the offset of the later one, where the earlier one
// has another.
func changeBetween(zone *time.Location, early, late int64) int64 {
	for offset := offsetAt(zone, late); late-early > 1; {
		if middle := early + (late-early)/2; offsetAt(zone, middle) == offset {
			late = middle
		} else {
			early = middle
		}
	}
	return late
}

func (s stretch) wall(instant int64) wall { return wall(instant + s.offset) }

// The clock of no zone is changed twice so far apart that one change meets the times which another
// one repeated.
const longestChange = 2 * day

// shownBefore returns the first time that the clock has not shown or passed before the stretch
// begins.
func shownBefore(zone *time.Location, s stretch) wall {
	shown := wall(math.MinInt64)
	for at := s.start; at != math.MinInt64 && s.start-at < longestChange; {
		before := stretchAt(zone, at-1)
		shown = max(shown, before.wall(at))
		at = before.start
	}
	return shown
}

// after returns the first slot after an instant, and the time that stands for it. Both instants
// are Unix seconds.
//
// A time that names its hours stands for the first instant at which the clock shows it or a later
// time: in a gap that is the first instant after the gap, of times that are shown twice it is the
// first. A day that the clock leaves out has no slot. Other times stand for each instant at which
// the clock shows them.
func (s *spec) after(zone *time.Location, instant int64) (slot int64, match wall, ok bool) {
	at := instant + 1
	now := stretchAt(zone, at)
	shown := wall(math.MinInt64)
	if !s.elapsed && now.start != math.MinInt64 && at-now.start < longestChange {
		shown = shownBefore(zone, now)
	}
	for {
		if !s.elapsed && at == now.start {
			if match, ok = s.inGap(shown, now.wall(at)); ok {
				return at, match, true
			}
		}
		from := now.wall(at)
		if !s.elapsed {
			from = max(from, shown)
		}
		if match, ok = s.next(from); !ok {
			return 0, 0, false
		}
		if slot = int64(match) - now.offset; slot < now.end {
			return slot, match, true
		}
		at, shown = now.end, max(shown, now.wall(now.end))
		now = stretchAt(zone, at)
	}
}

// inGap returns the first time that matches from one time to another one, of a day that is not
// left out as a whole.
func (s *spec) inGap(from, to wall) (match wall, ok bool) {
	for from < to {
		if match, ok = s.next(from); !ok || match >= to {
			return 0, false
		}
		today := match.day()
		if today.start() < from || (today+1).start() > to {
			return match, true
		}
		from = (today + 1).start()
	}
	return 0, false
}
