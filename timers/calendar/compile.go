package calendar

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/internal/zones"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Each list of a schedule may be so long; the instants of at may be more.
const (
	mostEntries  = 100
	mostInstants = 1000
)

// Compile judges the times of a schedule. The error is a [*schemas.Error] that names the field,
// such as times.cron[0].
func Compile(t *ops.ScheduleTimes) (*Calendar, error) {
	c, err := compile(t)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func compile(t *ops.ScheduleTimes) (*Calendar, *schemas.Error) {
	c := &Calendar{from: t.From.Time(), until: lastInstant, jitter: t.Jitter.Std()}
	for _, judge := range []func(*ops.ScheduleTimes) *schemas.Error{
		c.readZone, c.readSizes, c.readCron, c.readEvery, c.readCalendars, c.readAt,
		c.readExceptions, c.readBounds, c.judgeSlots,
	} {
		if err := judge(t); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func invalid(field, format string, args ...any) *schemas.Error {
	return schemas.Errorf(schemas.CodeInvalid, format, args...).InField(field)
}

// inside puts the field of an error into the n-th entry of a list.
func inside(err *schemas.Error, list string, n int) *schemas.Error {
	field := fmt.Sprintf("times.%s[%d]", list, n)
	if err.Field != "" && list != "cron" {
		field += "." + err.Field
	}
	return err.InField(field)
}

func loadZone(name, field string) (*time.Location, *schemas.Error) {
	zone, err := zones.Load(name)
	if err == nil {
		return zone, nil
	}
	hint := "use an IANA name such as Europe/Berlin, America/New_York or Asia/Kolkata, or leave it out for UTC"
	if near := zones.Near(name); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return nil, invalid(field, "%v", err).WithHint("%s", hint)
}

func (c *Calendar) readZone(t *ops.ScheduleTimes) (err *schemas.Error) {
	c.zone, err = loadZone(t.TimeZone, "times.timeZone")
	return err
}

func (c *Calendar) readSizes(t *ops.ScheduleTimes) *schemas.Error {
	for _, list := range []struct {
		field       string
		length, max int
	}{
		{"cron", len(t.Cron), mostEntries},
		{"every", len(t.Every), mostEntries},
		{"calendar", len(t.Calendar), mostEntries},
		{"except", len(t.Except), mostEntries},
		{"at", len(t.At), mostInstants},
	} {
		if list.length > list.max {
			return invalid("times."+list.field, "there are %d entries, at most %d are allowed",
				list.length, list.max).
				WithHint("one entry may have lists and ranges; or make more schedules")
		}
	}
	if len(t.Cron)+len(t.Every)+len(t.Calendar)+len(t.At) == 0 {
		return invalid("times", "the schedule has no times").
			WithHint(`give one of cron, every, calendar and at: {"cron": ["0 9 * * MON-FRI"]}`)
	}
	return nil
}

func (c *Calendar) readCron(t *ops.ScheduleTimes) *schemas.Error {
	for n, text := range t.Cron {
		s, err := compileCron(text)
		if err != nil {
			return inside(err, "cron", n)
		}
		c.specs = append(c.specs, s)
		fields, _ := splitCron(text)
		c.warn(s, fields, fmt.Sprintf("times.cron[%d]", n), "two cron entries")
	}
	return nil
}

func (c *Calendar) readEvery(t *ops.ScheduleTimes) *schemas.Error {
	for n, every := range t.Every {
		i, err := compileInterval(every)
		if err != nil {
			return inside(err, "every", n)
		}
		c.intervals = append(c.intervals, i)
	}
	return nil
}

// withDefaults returns the fields of a calendar; those of the time of day that are empty are time,
// the others any value.
func withDefaults(f *ops.ScheduleCalendar, timeOfDay string) ops.ScheduleCalendar {
	full := *f
	for _, field := range []*string{&full.Second, &full.Minute, &full.Hour} {
		*field = cmp.Or(strings.TrimSpace(*field), timeOfDay)
	}
	for _, field := range []*string{&full.DayOfMonth, &full.Month, &full.DayOfWeek, &full.Year} {
		*field = cmp.Or(strings.TrimSpace(*field), "*")
	}
	return full
}

func (c *Calendar) readCalendars(t *ops.ScheduleTimes) *schemas.Error {
	for n, calendar := range t.Calendar {
		f := withDefaults(&calendar, "0")
		s, err := compileFields(&f)
		if err != nil {
			return inside(err, "calendar", n)
		}
		c.specs = append(c.specs, s)
		c.warn(s, &f, fmt.Sprintf("times.calendar[%d]", n), "two calendar entries")
	}
	return nil
}

func (c *Calendar) readAt(t *ops.ScheduleTimes) *schemas.Error {
	for n, at := range t.At {
		instant := at.Time()
		switch {
		case at == 0:
			return invalid(fmt.Sprintf("times.at[%d]", n), "the instant is empty").
				WithHint("write it as 2026-12-24T18:00:00Z or with an offset")
		case !instant.Equal(instant.Truncate(time.Millisecond)):
			return invalid(fmt.Sprintf("times.at[%d]", n), "%v is not in whole milliseconds", at).
				WithHint("round it")
		}
		c.at = append(c.at, instant)
	}
	slices.SortFunc(c.at, time.Time.Compare)
	c.at = slices.CompactFunc(c.at, time.Time.Equal)
	return nil
}

func (c *Calendar) readExceptions(t *ops.ScheduleTimes) *schemas.Error {
	for n, except := range t.Except {
		x, err := compileException(except)
		if err != nil {
			return inside(err, "except", n)
		}
		c.exceptions = append(c.exceptions, x)
	}
	return nil
}

func (c *Calendar) readBounds(t *ops.ScheduleTimes) *schemas.Error {
	if t.Until != 0 {
		c.until = earlier(c.until, t.Until.Time())
	}
	switch {
	case t.Until != 0 && t.From != 0 && t.Until <= t.From:
		return invalid("times.until", "the schedule ends at %v, and begins at %v", t.Until, t.From).
			WithHint("set until to a time later than from")
	case t.Jitter < 0:
		return invalid("times.jitter", "a jitter of %v is not allowed", t.Jitter).
			WithHint("leave it out for none")
	}
	return nil
}

// judgeSlots looks whether there is any slot at all, from 1970 or the first of at on.
func (c *Calendar) judgeSlots(*ops.ScheduleTimes) *schemas.Error {
	begin := time.Unix(0, 0).Add(-longestChange * time.Second)
	if len(c.at) > 0 {
		begin = earlier(begin, c.at[0].Add(-1))
	}
	_, taken, ok := c.next(begin)
	switch {
	case ok:
		return nil
	case taken > 0:
		return invalid("times.except", "the exceptions take away all times").
			WithHint("leave one out, or make it smaller")
	default:
		return invalid("times", "no time is from %s to %s",
			c.from.Format(time.RFC3339), c.until.Format(time.RFC3339)).
			WithHint("change from and until, or the times: all of these are outside")
	}
}

// warn notes what is often meant in another way.
func (c *Calendar) warn(s *spec, f *ops.ScheduleCalendar, field, twoEntries string) {
	if !s.monthDays.any && !s.weekDays.any {
		c.warnings = append(c.warnings, fmt.Sprintf(
			"%s: day of month %q and day of week %q are both given: only days that match both "+
				"are meant; for days that match one of them write %s", field, f.DayOfMonth,
			f.DayOfWeek, twoEntries))
	}
	for _, p := range []struct {
		part
		text, over string
	}{{seconds, f.Second, "minute"}, {minutes, f.Minute, "hour"}, {hours, f.Hour, "day"}} {
		for item := range strings.SplitSeq(p.text, ",") {
			step, err := strconv.Atoi(strings.TrimPrefix(item, "*/"))
			if err == nil && strings.HasPrefix(item, "*/") && (p.max+1)%step != 0 {
				c.warnings = append(c.warnings, fmt.Sprintf(
					"%s: %s %q begins anew with each %s; for times at an even distance use every",
					field, p.name, item, p.over))
			}
		}
	}
}
