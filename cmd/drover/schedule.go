package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/zones"
	"github.com/droverhq/drover/schemas"
)

func scheduleCommand(a *app) *cobra.Command {
	cmd := groupCommand(a, "schedule", "Start or signal workflows at times, or once in each period",
		`Start or signal workflows at times of their own, or once in a window of each
period. A running server with the role ops does it: exactly one run for each
time, across crashes and restarts. docs/guides/schedules.md is the guide.`)
	cmd.Aliases = []string{"schedules"}
	cmd.AddCommand(
		scheduleCreate(a), scheduleList(a), scheduleShow(a), scheduleUpdate(a), schedulePause(a),
		scheduleResume(a), scheduleTrigger(a), scheduleBackfill(a), scheduleDelete(a),
	)
	return cmd
}

// groupCommand is a command that has only commands below it.
func groupCommand(a *app, use, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.running = false
			if len(args) == 0 {
				return fmt.Errorf("a command is missing")
			}
			return noCommand(cmd, args[0])
		},
	}
}

func scheduleList(a *app) *cobra.Command {
	var o drover.SchedulesOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the schedules, when they are due, and how the last time ended",
		Args:  argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				none := `no schedules: "drover schedule create" makes one`
				return lines(a, table{scheduleColumns, none}, c.Schedules(ctx, o), scheduleRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Prefix, "prefix", "", "only ids that begin so")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

var scheduleColumns = []column{
	{head: "ID", keep: 14},
	{head: "TIMES", keep: 14},
	{head: "NEXT"},
	{head: "LAST"},
	{head: "RUNNING", drop: 1},
}

func scheduleRow(l schemas.ScheduleLine) []string {
	next, last := "-", "-"
	switch {
	case l.Schedule.Paused:
		next = "paused"
	case l.Next != 0:
		next = l.Next.Time().Format("2006-01-02 15:04:05Z")
	}
	if l.Last != nil {
		last = string(l.Last.Outcome)
	}
	return []string{
		word(l.Schedule.ID, whole), scheduleTimes(&l.Schedule), next, last, fmt.Sprint(l.Running),
	}
}

// scheduleTimes says in short when a schedule is due.
func scheduleTimes(s *schemas.Schedule) string {
	var parts []string
	zone := ""
	switch t := s.Times; {
	case s.Window != nil:
		w := s.Window
		period := cmp.Or(w.Period, "day")
		if strings.Contains(period, " ") {
			period = "period of " + period
		}
		window := sentence(w.Opens) + "+" + shortSpan(w.Length)
		parts, zone = append(parts, map[bool]string{false: "once a ", true: "once an "}[period == "hour"]+sentence(period)+" "+window), w.TimeZone
	case t != nil:
		zone = t.TimeZone
		for _, c := range t.Cron {
			parts = append(parts, sentence(c))
		}
		for _, e := range t.Every {
			every := "every " + shortSpan(e.Every)
			if e.Offset != 0 {
				every += "+" + shortSpan(e.Offset)
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
		text += " " + sentence(zone)
	}
	if text == "" {
		return "-"
	}
	return text
}

// calendarWords has the fields of a calendar that say something.
func calendarWords(c *schemas.ScheduleCalendar) string {
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
			all = append(all, f.name+" "+sentence(f.value))
		}
	}
	return "calendar " + strings.Join(all, ", ")
}

// shortSpan writes a duration without what is zero at its end: 1h for 1h0m0s.
func shortSpan(d schemas.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// zoneOf is the time zone of a schedule; UTC if this machine does not know it.
func zoneOf(s *schemas.Schedule) *time.Location {
	name := ""
	switch {
	case s.Window != nil:
		name = s.Window.TimeZone
	case s.Times != nil:
		name = s.Times.TimeZone
	}
	zone, err := zones.Load(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// local shows an instant with its offset and the day of the week.
func local(ts schemas.Timestamp, zone *time.Location) string {
	return ts.Time().In(zone).Format("2006-01-02 15:04:05.999 -07:00 Mon")
}
