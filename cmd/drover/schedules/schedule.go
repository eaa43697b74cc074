package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/zones"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func ScheduleCommand(a *cli.App) *cobra.Command {
	cmd := cli.GroupCommand(a, "schedule", "Start or signal workflows at times, or once in each period",
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

func scheduleList(a *cli.App) *cobra.Command {
	var o drover.SchedulesOptions
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the schedules, when they are due, and how the last time ended",
		Args:  cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				none := `no schedules: "drover schedule create" makes one`
				return cli.Lines(a, cli.Table{Columns: scheduleColumns, None: none},
					c.Schedules(ctx, o), scheduleRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Prefix, "prefix", "", "only ids that begin so")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

var scheduleColumns = []cli.Column{
	{Head: "ID", Keep: 14},
	{Head: "TIMES", Keep: 14},
	{Head: "NEXT"},
	{Head: "LAST"},
	{Head: "RUNNING", Drop: 1},
}

func scheduleRow(l ops.ScheduleLine) []string {
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
		cli.Word(l.Schedule.ID, cli.Whole), cli.ScheduleTimes(&l.Schedule), next, last,
		fmt.Sprint(l.Running),
	}
}

// zoneOf is the time zone of a schedule; UTC if this machine does not know it.
func zoneOf(s *ops.Schedule) *time.Location {
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
