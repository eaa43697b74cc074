package calendar

import (
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// exception takes times away: those that times matches, or the days from first to last.
type exception struct {
	times       *spec
	first, last dayNumber
}

func compileException(e ops.ScheduleException) (x exception, err *schemas.Error) {
	wrong := func(field, format string, args ...any) *schemas.Error {
		return schemas.Errorf(schemas.CodeInvalid, format, args...).InField(field)
	}
	kinds := 0
	for _, has := range []bool{e.Calendar != nil, e.Date != "", e.From != "" || e.Until != ""} {
		if has {
			kinds++
		}
	}
	if kinds != 1 {
		return x, wrong("",
			"an exception has calendar, or date, or from and until: this one has %d of the three",
			kinds).
			WithHint("write an exception for each of them")
	}
	if e.Calendar != nil {
		f := withDefaults(e.Calendar, "*")
		if x.times, err = compileFields(&f); err != nil {
			return x, err.InField("calendar." + err.Field)
		}
		return x, nil
	}
	x.first, x.last = dayOf(1, 1, 1), dayOf(9999, 12, 31)
	for _, date := range []struct {
		field, text string
		into        []*dayNumber
	}{
		{"date", e.Date, []*dayNumber{&x.first, &x.last}},
		{"from", e.From, []*dayNumber{&x.first}},
		{"until", e.Until, []*dayNumber{&x.last}},
	} {
		if date.text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, date.text)
		if err != nil {
			return x, wrong(date.field, "%q is no date", date.text).
				WithHint("write year, month and day of one that exists: 2026-12-25")
		}
		for _, into := range date.into {
			*into = dayOf(t.Year(), int(t.Month()), t.Day())
		}
	}
	if x.last < x.first {
		return x, wrong("until", "the exception ends on %s, before it begins on %s",
			e.Until, e.From).
			WithHint("exchange from and until")
	}
	return x, nil
}

// takes tells whether a slot at which the clock shows w is taken away, and until which time, not
// included, every other one is.
func (x exception) takes(w wall) (until wall, ok bool) {
	today := w.day()
	switch s := x.times; {
	case s == nil:
		return (x.last + 1).start(), x.first <= today && today <= x.last
	case !s.matchesDay(today):
		return 0, false
	case s.hour == allHours && s.minute == allMinutes && s.second == allMinutes:
		return (today + 1).start(), true
	default:
		second := w.secondOfDay()
		if next, ok := s.nextOfDay(second); !ok || next != second {
			return 0, false
		}
		unit := wall(1)
		if s.second == allMinutes {
			unit = minute
			if s.minute == allMinutes {
				unit = hour
			}
		}
		return w - w%unit + unit, true // days have whole hours
	}
}
