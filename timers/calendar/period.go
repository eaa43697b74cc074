package calendar

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
)

// period divides the time of a zone into pieces that have names. Each begins at a slot of begins
// and lasts until the next.
type period struct {
	name   string // day, week, month, hour or cron
	begins *spec
	zone   *time.Location
}

var periods = map[string]string{
	"day":   "0 0 * * *",
	"week":  "0 0 * * MON",
	"month": "0 0 1 * *",
	"hour":  "0 * * * *",
}

// compilePeriod reads day, week, month, hour or a cron expression. The error names the field
// period or timeZone.
func compilePeriod(name, zone string) (*period, *schemas.Error) {
	location, err := loadZone(zone, "timeZone")
	if err != nil {
		return nil, err
	}
	p := &period{name: name, zone: location}
	expression, known := periods[name]
	if !known {
		p.name, expression = "cron", name
	}
	if !known && !strings.ContainsAny(name, " @") {
		return nil,
			schemas.Errorf(schemas.CodeInvalid, "there is no period %q", name).InField("period").
				WithHint(
					"a period is day, week, month, hour or a cron expression, such as \"0 9 * * MON\"")
	}
	if p.begins, err = compileCron(expression); err != nil {
		if !known {
			err.Message = fmt.Sprintf("%q is no period: %s", name, err.Message)
		}
		hint := "a period is day, week, month, hour or a cron expression"
		if err.Hint != "" {
			hint += "; " + err.Hint
		}
		return nil, err.InField("period").WithHint("%s", hint)
	}
	return p, nil
}

// shortest is a span that no period is shorter than, as far as the clock is not changed. For a
// cron expression it is that of the first fifty periods of 2024.
func (p *period) shortest() time.Duration {
	switch p.name {
	case "hour":
		return time.Hour
	case "day":
		return 24 * time.Hour
	case "week":
		return 7 * 24 * time.Hour
	case "month":
		return 28 * 24 * time.Hour
	}
	found := time.Duration(1<<63 - 1)
	last, _, ok := p.next(p.begins, time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
	for n := 0; ok && n < 50; n++ {
		var next time.Time
		if next, _, ok = p.next(p.begins, last); ok {
			found, last = min(found, next.Sub(last)), next
		}
	}
	return found
}

// next returns the first slot of s after an instant, and the time that stands for it.
func (p *period) next(s *spec, after time.Time) (slot time.Time, match wall, ok bool) {
	if !after.Before(lastInstant) {
		return slot, 0, false
	}
	instant, match, ok := s.after(p.zone, latest(after, firstInstant).Unix())
	if slot = time.Unix(instant, 0).UTC(); !ok || !slot.Before(lastInstant) {
		return time.Time{}, 0, false
	}
	return slot, match, true
}

// key names the period that an instant begins or is in, which match stands for.
func (p *period) key(begin time.Time, match wall) string {
	year, month, dayOfMonth := match.day().civil()
	switch p.name {
	case "day":
		return fmt.Sprintf("%04d-%02d-%02d", year, month, dayOfMonth)
	case "week":
		year, week := time.Unix(int64(match), 0).UTC().ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case "month":
		return fmt.Sprintf("%04d-%02d", year, month)
	case "hour":
		begin, _ = p.begin(begin)
		return begin.Format("2006-01-02T1504Z")
	default:
		return begin.Format("20060102T150405Z")
	}
}

// begin returns the beginning of the period in which an instant is, and the time that stands for
// it; the zero time if there was no beginning yet.
func (p *period) begin(t time.Time) (begin time.Time, match wall) {
	// The next slot after an instant is later the later the instant is. So the last one that is
	// not after t is found by halves.
	isBefore := func(instant int64) bool {
		next, at, ok := p.next(p.begins, time.Unix(instant, 0))
		if !ok || next.After(t) {
			return false
		}
		begin, match = next, at
		return true
	}
	late := t.Unix() // the next slot after it is after t
	back := int64(minute)
	for !isBefore(late - back) {
		if late -= back; late < firstInstant.Unix() {
			return time.Time{}, 0
		}
		back *= 2
	}
	for early := begin.Unix(); late-early > 0; {
		middle := early + (late-early)/2
		if isBefore(middle) {
			early = begin.Unix()
		} else {
			late = middle
		}
	}
	return begin, match
}

// PeriodOf names the period (day, week, month, hour, or a cron expression) of a zone in which an
// instant lies, and returns its bounds; closes is not in it. Key has letters, digits and hyphens
// only. The error is a [*schemas.Error] that names the field period or timeZone.
func PeriodOf(period, zone string, t time.Time) (key string, opens, closes time.Time, err error) {
	p, invalidPeriod := compilePeriod(cmp.Or(period, usualPeriod), zone)
	if invalidPeriod != nil {
		return "", opens, closes, invalidPeriod
	}
	opens, match := p.begin(t)
	closes, _, ok := p.next(p.begins, t)
	if opens.IsZero() || !ok {
		return "", opens, closes, invalid("period", "%q has no period at %s", period,
			t.UTC().Format(time.RFC3339)).
			WithHint("give a time from 1970 to 2261")
	}
	return p.key(opens, match), opens, closes, nil
}
