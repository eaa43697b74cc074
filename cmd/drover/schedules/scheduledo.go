package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas/ops"
)

// changeSchedule makes the RunE of a command that does one thing to the schedule ID.
func changeSchedule(
	a *cli.App, done func(*ops.ScheduleResponse) string,
	do func(context.Context, *drover.Client, string) (*ops.ScheduleResponse, error),
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
			r, err := do(ctx, c, args[0])
			if err != nil {
				return err
			}
			if r.V = 0; a.JSON {
				return a.Document(r)
			}
			if err := a.Say("%s", done(r)+" "+cli.Word(args[0], 256)); err != nil {
				return err
			}
			return warned(a, r)
		})
	}
}

// warned says what the server warns of.
func warned(a *cli.App, r *ops.ScheduleResponse) error {
	for _, w := range r.Warnings {
		if err := a.Say("warning: %s", cli.Sentence(w)); err != nil {
			return err
		}
	}
	return nil
}

// either says one of two things: whether a request has changed something.
func either(changed, not string) func(*ops.ScheduleResponse) string {
	return func(r *ops.ScheduleResponse) string {
		if r.Changed {
			return changed
		}
		return not
	}
}

func schedulePause(a *cli.App) *cobra.Command {
	var reason string
	var until laterFlag
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Pause a schedule",
		Long: `Pause a schedule until "drover schedule resume", or for a time. Its times are
counted as skipped meanwhile, and its open runs go on. Times that waited for the
end of an earlier run are done after the pause.`,
		Example: `  drover schedule pause nightly --reason "the warehouse moves"
  drover schedule pause nightly --until 2h`,
		Args: cli.Filled("ID"),
		RunE: changeSchedule(a, either("paused schedule", "was paused before: schedule"),
			func(ctx context.Context, c *drover.Client, id string) (*ops.ScheduleResponse, error) {
				return c.PauseSchedule(ctx, id, until.value, reason)
			}),
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Var(
		&until, "until",
		"resume by itself at an instant such as 2026-12-24T18:00:00Z, or after a time such as 2h",
	)
	fs.StringVar(&reason, "reason", "", "why")
	return cmd
}

func scheduleResume(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Resume a paused schedule",
		Args:  cli.Filled("ID"),
		RunE: changeSchedule(a, either("resumed schedule", "was not paused: schedule"),
			func(ctx context.Context, c *drover.Client, id string) (*ops.ScheduleResponse, error) {
				return c.ResumeSchedule(ctx, id, reason)
			}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func scheduleDelete(a *cli.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a schedule; its open runs go on",
		Args:  cli.Filled("ID"),
		RunE: changeSchedule(a, either("deleted schedule", "was deleted before: schedule"),
			func(ctx context.Context, c *drover.Client, id string) (*ops.ScheduleResponse, error) {
				return c.DeleteSchedule(ctx, id, reason)
			}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

// slotFlags are about slots that somebody asks for.
type slotFlags struct {
	overlap string
	o       drover.SlotOptions
}

func (f *slotFlags) register(cmd *cobra.Command, overlap string) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(
		&f.overlap, "overlap", "",
		"while an earlier run is open: as of schedule create (default "+overlap+")",
	)
	fs.StringVar(
		&f.o.RequestID, "request-id", "",
		"a repeat with the same request id does nothing (default a new one)",
	)
	fs.StringVar(&f.o.Reason, "reason", "", "why")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		f.o.Overlap = ops.OverlapPolicy(f.overlap)
		return usageOf(cmd, f.o.Overlap.Validate("--overlap"))
	}
}

func scheduleTrigger(a *cli.App) *cobra.Command {
	var f slotFlags
	cmd := &cobra.Command{
		Use:   "trigger ID",
		Short: "Run the action of a schedule now",
		Args:  cli.Filled("ID"),
		RunE: changeSchedule(a, either("triggered schedule", "was triggered before: schedule"),
			func(ctx context.Context, c *drover.Client, id string) (*ops.ScheduleResponse, error) {
				return c.TriggerSchedule(ctx, id, &f.o)
			}),
	}
	f.register(cmd, "that of the schedule")
	return cmd
}

func scheduleBackfill(a *cli.App) *cobra.Command {
	var f slotFlags
	var from, until cli.TimeFlag
	cmd := &cobra.Command{
		Use:   "backfill ID FROM TO",
		Short: "Run the action for times in the past",
		Long: `Do the times that a schedule would have had from FROM on and before TO, both in
the past: instants, days in UTC, or 90m for that long ago.`,
		Example: `  drover schedule backfill nightly 2026-11-01 2026-11-08
  drover schedule backfill poll 24h 12h --overlap allow`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cli.Filled("ID", "FROM", "TO")(cmd, args); err != nil {
				return err
			}
			for i, t := range []*cli.TimeFlag{&from, &until} {
				if err := t.Set(args[i+1]); err != nil {
					return errors.New(
						[]string{"FROM", "TO"}[i] + " is " + cli.Word(args[i+1], 100) + ": " +
							err.Error(),
					)
				}
			}
			return nil
		},
		RunE: changeSchedule(a, func(r *ops.ScheduleResponse) string {
			return cli.Counted(r.Slots, "time", "times") + " to do for schedule"
		}, func(ctx context.Context, c *drover.Client, id string) (*ops.ScheduleResponse, error) {
			return c.BackfillSchedule(ctx, id, from.Value, until.Value, &f.o)
		}),
	}
	f.register(cmd, string(ops.OverlapBufferAll))
	return cmd
}

// laterFlag is an instant to come: one with its offset, or a time from now.
type laterFlag struct{ instantFlag }

// Set implements [pflag.Value].
func (t *laterFlag) Set(s string) error {
	var in cli.DurationFlag
	if t.instantFlag.Set(s) == nil {
		return nil
	}
	if in.Set(s) == nil {
		t.value = time.Now().Add(in.Value)
		return nil
	}
	return errors.New("want an instant such as 2026-12-24T18:00:00Z, or a time from now such as 2h")
}
