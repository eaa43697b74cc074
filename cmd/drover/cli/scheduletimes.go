package cli

import (
	"cmp"
	"strings"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// ScheduleTimes says in short when a schedule is due.
func ScheduleTimes(s *ops.Schedule) string {
	var parts []string
	zone := ""
	switch t := s.Times; {
	case s.Window != nil:
		w := s.Window
		period := cmp.Or(w.Period, "day")
		if strings.Contains(period, " ") {
			period = "period of " + period
		}
		window := Sentence(w.Opens) + "+" + ShortSpan(w.Length)
		parts, zone = append(parts, map[bool]string{false: "once a ", true: "once an "}[period ==
			"hour"]+Sentence(period)+" "+window), w.TimeZone
	case t != nil:
		zone = t.TimeZone
		for _, c := range t.Cron {
			parts = append(parts, Sentence(c))
		}
		for _, e := range t.Every {
			every := "every " + ShortSpan(e.Every)
			if e.Offset != 0 {
				every += "+" + ShortSpan(e.Offset)
			}
			parts = append(parts, every)
		}
		for i := range t.Calendar {
			parts = append(parts, calendarWords(&t.Calendar[i]))
		}
		for _, at := range t.At {
			parts = append(parts, "at "+at.String())
		}
		if len(t.Except) > 0 {
			parts[len(parts)-1] += ", with exceptions"
		}
	}
	text := strings.Join(parts, "; ")
	if zone != "" {
		text += " " + Sentence(zone)
	}
	if text == "" {
		return "-"
	}
	return text
}

// calendarWords has the fields of a calendar that say something.
func calendarWords(c *ops.ScheduleCalendar) string {
	var all []string
	for _, f := range []struct{ name, value string }{
		{"year", c.Year},
		{"month", c.Month},
		{"day", c.DayOfMonth},
		{"weekday", c.DayOfWeek},
		{"hour", c.Hour},
		{"minute", c.Minute},
		{"second", c.Second},
	} {
		if f.value != "" {
			all = append(all, f.name+" "+Sentence(f.value))
		}
	}
	return "calendar " + strings.Join(all, ", ")
}

// ShortSpan writes a duration without what is zero at its end: 1h for 1h0m0s.
func ShortSpan(d schemas.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
