package schedules

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas/ops"
)

// MostSlots is how many slots that run, and how many that wait, are shown to people.
const MostSlots = 20

func scheduleShow(a *cli.App) *cobra.Command {
	var next int
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a schedule: what it is, what it has done, and its next times",
		Args:  cli.Filled("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.ShowSchedule(ctx, args[0], next)
				if err != nil {
					return err
				}
				if r.V = 0; a.JSON {
					return a.Document(r)
				}
				_, err = a.Stdout.Write(ScheduleText(r))
				return err
			})
		},
	}
	cmd.Flags().IntVar(&next, "next", 0, "how many of the next times (default 10)")
	return cmd
}

// ScheduleText lays a schedule out for people.
func ScheduleText(r *ops.ScheduleResponse) []byte {
	var b bytes.Buffer
	if r.Record == nil {
		return nil
	}
	s, zone := &r.Record.Schedule, zoneOf(&r.Record.Schedule)
	t := tabwriter.NewWriter(&b, 2, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row("schedule", "%s", cli.Word(s.ID, cli.Whole))
	row("times", "%s", cli.ScheduleTimes(s))
	row("action", "%s", actionWords(&s.Action))
	row("overlap", "%s", cmp.Or(s.Overlap, ops.OverlapSkip))
	if s.CatchUp != 0 {
		row("catch up", "%s", cli.ShortSpan(s.CatchUp))
	}
	if s.PauseOnFailure {
		row("on failure", "it is paused")
	}
	if s.Remaining != nil {
		row("remaining", "%d", *s.Remaining)
	}
	if s.Paused {
		text := "until it is resumed"
		if s.PausedUntil != 0 {
			text = "until " + local(s.PausedUntil, zone)
		}
		row("paused", "%s", text)
	}
	if s.Note != "" {
		row("note", "%s", cli.Sentence(s.Note))
	}
	row("created", "%s", local(r.Record.CreatedAt, zone))
	if r.Record.UpdatedAt != 0 {
		row("changed", "%s by %s", local(r.Record.UpdatedAt, zone), cli.Sentence(r.Record.Identity))
	}
	if r.TimeZones != "" {
		row("time zones", "%s", cli.Sentence(r.TimeZones))
	}
	scheduleState(row, r.State, zone)
	for i, ts := range r.NextTimes {
		row([]string{"next", ""}[min(i, 1)], "%s", local(ts, zone))
	}
	t.Flush()
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", cli.Sentence(w))
	}
	if r.State != nil && len(r.State.Recent) > 0 {
		fmt.Fprint(&b, "\nlast times\n")
		slotTable(&b, r.State.Recent, zone)
	}
	return b.Bytes()
}

func scheduleState(
	row func(name, format string, args ...any), s *ops.ScheduleState, zone *time.Location,
) {
	if s == nil {
		return
	}
	row("counts", "%s", countWords(&s.Counts))
	for _, slots := range []struct {
		name string
		all  []ops.ScheduleSlot
	}{{"running", s.Running}, {"waiting", s.Buffered}} {
		for i := range slots.all {
			if left := len(slots.all) - i; i == MostSlots && left > 1 {
				row(slots.name, "and %d more: see them with --json", left)
				break
			}
			slot := &slots.all[i]
			text := local(slot.Slot, zone)
			if slot.WorkflowID != "" {
				text += " " + cli.Word(slot.WorkflowID, cli.Whole)
			}
			row(slots.name, "%s", text)
		}
	}
}

// countWords has the counters that are not zero.
func countWords(c *ops.ScheduleCounts) string {
	var all []string
	for _, n := range []struct {
		name  string
		count int64
	}{
		{"started", c.Started},
		{"done", c.Done},
		{"failed", c.Failed},
		{"skipped", c.Skipped},
		{"missed", c.Missed},
		{"overrun", c.Overrun},
		{"refused", c.Refused},
	} {
		if n.count != 0 {
			all = append(all, fmt.Sprintf("%s %d", n.name, n.count))
		}
	}
	if len(all) == 0 {
		return "none yet"
	}
	return strings.Join(all, ", ")
}

func slotTable(b *bytes.Buffer, slots []ops.ScheduleSlot, zone *time.Location) {
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "  TIME\tOUTCOME\tWORKFLOW\tREASON")
	for i := range slots {
		s := &slots[i]
		outcome, id, reason := string(s.Outcome), "-", "-"
		if s.Manual != "" {
			outcome += " (asked for)"
		}
		if s.WorkflowID != "" {
			id = cli.Word(s.WorkflowID, 60)
		}
		if s.Reason != "" {
			reason = cli.Sentence(s.Reason)
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", local(s.Slot, zone), outcome, id, reason)
	}
	t.Flush()
}

// actionWords says what is done for each slot.
func actionWords(a *ops.ScheduleAction) string {
	switch {
	case a.Signal != nil:
		return "signal " + cli.Word(a.Signal.Name, 256) + " to " +
			cli.Word(a.Signal.WorkflowID, 256)
	case a.Start == nil:
		return "-"
	}
	text := "start " + cli.Word(a.Start.Type, 256)
	if a.Start.TypeVersion != "" {
		text += " version " + cli.Word(a.Start.TypeVersion, 256)
	}
	if a.Start.WorkflowID != "" {
		text += " as " + cli.Word(a.Start.WorkflowID, 256)
	}
	if a.Start.Signal != nil {
		text += ", or signal it with " + cli.Word(a.Start.Signal.Name, 256)
	}
	return text
}
