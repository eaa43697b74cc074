package calendar

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// set reads a part whose values are bits.
func (p *part) set(text string) (set uint64, err *schemas.Error) {
	err = p.each(text, nil, func(n int) { set |= 1 << n })
	return set, err
}

// compileFields reads the seven fields of a cron expression; none is empty. The error names the
// field of a calendar in Field.
func compileFields(f *ops.ScheduleCalendar) (*spec, *schemas.Error) {
	s := &spec{elapsed: strings.ContainsAny(f.Hour, "*?/")}
	for _, field := range []struct {
		name string
		text string
		read func() *schemas.Error
	}{
		{"second", f.Second, func() (err *schemas.Error) { s.second, err = seconds.set(f.Second); return err }},
		{"minute", f.Minute, func() (err *schemas.Error) { s.minute, err = minutes.set(f.Minute); return err }},
		{"hour", f.Hour, func() *schemas.Error {
			set, err := hours.set(f.Hour)
			s.hour = uint32(set)
			return err
		}},
		{
			"dayOfMonth", f.DayOfMonth,
			func() (err *schemas.Error) { s.monthDays, err = readMonthDays(f.DayOfMonth); return err },
		},
		{"month", f.Month, func() *schemas.Error {
			set, err := months.set(f.Month)
			s.month = uint16(set)
			return err
		}},
		{
			"dayOfWeek", f.DayOfWeek,
			func() (err *schemas.Error) { s.weekDays, err = readWeekDays(f.DayOfWeek); return err },
		},
		{"year", f.Year, func() (err *schemas.Error) { s.years, err = readYears(f.Year); return err }},
	} {
		if len(field.text) > longestText {
			return nil, schemas.Errorf(schemas.CodeInvalid, "a text of %d bytes is too long",
				len(field.text)).
				InField(field.name).
				WithHint("use at most %d bytes: ranges and steps are short", longestText)
		}
		if err := field.read(); err != nil {
			return nil, err.InField(field.name)
		}
	}
	s.elapsed = s.elapsed || s.hour == allHours
	if _, ok := s.next(dayOf(firstYear, 1, 1).start()); !ok {
		return nil, schemas.Errorf(schemas.CodeInvalid, "no day matches day of month %q, month "+
			"%q, day of week %q and year %q together", f.DayOfMonth, f.Month, f.DayOfWeek, f.Year).
			InField("dayOfMonth").
			WithHint("choose days that exist: L is the last day of every month")
	}
	return s, nil
}

func readMonthDays(text string) (s monthDays, err *schemas.Error) {
	err = daysOfMonth.each(text, func(item string) (known bool, err *schemas.Error) {
		switch before, isWeekday := strings.CutSuffix(item, "W"); {
		case item == "L":
			s.fromEnd |= 1
		case item == "LW", item == "WL":
			s.lastWeekday = true
		case strings.HasPrefix(item, "L-"):
			n, notNumber := strconv.Atoi(item[2:])
			if notNumber != nil || n < 0 || n > 30 {
				return false, daysOfMonth.wrong(item, "%q is not from 0 to 30", item[2:]).
					WithHint("%s", daysOfMonth.usage())
			}
			s.fromEnd |= 1 << n
		case isWeekday:
			n, err := daysOfMonth.value(item, before)
			if err != nil {
				return false, err
			}
			s.nearest |= 1 << n
		default:
			return false, nil
		}
		return true, nil
	}, func(n int) { s.plain |= 1 << n })
	s.any = bits.OnesCount32(s.plain) == daysOfMonth.max
	return s, err
}

func readWeekDays(text string) (s weekDays, err *schemas.Error) {
	err = daysOfWeek.each(text, func(item string) (known bool, err *schemas.Error) {
		if item == "L" {
			return false, daysOfWeek.wrong(item, "L needs a day before it").
				WithHint("write SATL for the last Saturday of a month, SAT for every one")
		}
		if name, which, ok := strings.Cut(item, "#"); ok {
			n, err := daysOfWeek.value(item, name)
			if err != nil {
				return false, err
			}
			k, notNumber := strconv.Atoi(which)
			if notNumber != nil || k < 1 || k > 5 {
				return false, daysOfWeek.wrong(item, "%q is not from 1 to 5", which).
					WithHint("write FRI#2 for the second Friday of a month, FRIL for the last")
			}
			s.nth[k] |= 1 << (n % 7)
			return true, nil
		}
		if name, ok := strings.CutSuffix(item, "L"); ok {
			n, err := daysOfWeek.value(item, name)
			if err != nil {
				return false, err
			}
			s.last |= 1 << (n % 7)
			return true, nil
		}
		return false, nil
	}, func(n int) { s.plain |= 1 << n })
	s.any = s.plain == 1<<7-1
	return s, err
}

func readYears(text string) (set []bool, err *schemas.Error) {
	if years.any(text) {
		return nil, nil
	}
	set = make([]bool, lastYear-firstYear+1)
	err = years.each(text, nil, func(n int) { set[n-firstYear] = true })
	return set, err
}
