package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas/ops"
)

// nextShown is how many of the next times are told after a change.
const nextShown = 5

func scheduleCreate(a *cli.App) *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Create a schedule",
		Long: `Make a schedule, by flags or from a file, and tell its next times.

It has times (--cron, --every, --at, all of them together) or a window, in
which it is done once a period (--window). It starts workflows of --type, or
signals --workflow. In the input, ${slot} stands for the time, ${last.slot}
for the last one that was done, and ${last.result} for the result of the last
run that completed.

Cron has five fields, minute, hour, day of month, month and day of week, or
six with the second first; or @hourly, @daily, @weekly, @monthly, @yearly. If
both days are given both must match.

--file takes the same as the documents of "drover schedule show --json" under
schedule: times, window, action and so on. A flag changes what the file says.`,
		Example: `  drover schedule create nightly --cron "0 3 * * *" --type report
  drover schedule create poll --every 5m --type poll --overlap bufferOne
  drover schedule create daily --window 02:00+1h --zone Asia/Tokyo --type report
  drover schedule create wake --cron "0 8 * * *" --signal wake --workflow plan
  drover schedule create nightly --file nightly.yaml`,
		Args: cli.Filled("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := ops.Schedule{ID: args[0]}
			if err := f.apply(cmd, a.Stdin, &s); err != nil {
				return err
			}
			if err := complete(&s); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.CreateSchedule(ctx, s)
				if err != nil {
					return f.refusedSchedule(err)
				}
				return scheduleSaid(a, r, "created")
			})
		},
	}
	f.register(cmd)
	return cmd
}

// complete refuses a schedule that says nothing of what it is for, or when.
func complete(s *ops.Schedule) error {
	switch {
	case s.Action.Start == nil && s.Action.Signal == nil:
		return errors.New(
			"--type is missing: say which workflows are started, or --signal and --workflow",
		)
	case s.Times == nil && s.Window == nil:
		return errors.New("there are no times: say when, by --cron, --every, --at or --window")
	}
	return nil
}

func scheduleUpdate(a *cli.App) *cobra.Command {
	var f scheduleFlags
	cmd := &cobra.Command{
		Use:   "update ID",
		Short: "Change a schedule",
		Long: `Change a schedule: what the flags say, or all of it with --file. Its counters
stay, and times count from now on. If somebody else changes it meanwhile,
nothing is changed, and the exit code is 1.`,
		Example: `  drover schedule update nightly --cron "30 3 * * *"
  drover schedule update nightly --file nightly.yaml`,
		Args: cli.Filled("ID"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			for _, names := range [][]string{{"file"}, timeFlags, windowFlags, actionFlags, otherFlags} {
				if f.given(names...) {
					return nil
				}
			}
			return cli.Usage(cmd, errors.New("a flag is missing: say what is to be changed"))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				was, err := c.ShowSchedule(ctx, args[0], 1)
				if err != nil {
					return err
				}
				if was.Record == nil {
					return fmt.Errorf(
						"schedule update: the server has not said what schedule %q is", args[0])
				}
				s := was.Record.Schedule
				if err := f.apply(cmd, a.Stdin, &s); err != nil {
					return err
				}
				r, err := c.UpdateSchedule(ctx, s, was.Revision)
				if err != nil {
					return f.refusedSchedule(err)
				}
				return scheduleSaid(a, r, "updated")
			})
		},
	}
	f.register(cmd)
	return cmd
}

// scheduleSaid tells what became of a schedule, with its next times and what may not be meant.
func scheduleSaid(a *cli.App, r *ops.ScheduleResponse, done string) error {
	if r.V = 0; a.JSON {
		return a.Document(r)
	}
	if r.Record == nil {
		return a.Say("%s", done)
	}
	s := &r.Record.Schedule
	if err := a.Say("%s schedule %s", done, cli.Word(s.ID, 256)); err != nil {
		return err
	}
	for _, w := range r.Warnings {
		if err := a.Say("warning: %s", cli.Sentence(w)); err != nil {
			return err
		}
	}
	for i, ts := range r.NextTimes[:min(len(r.NextTimes), nextShown)] {
		head := "    "
		if i == 0 {
			head = "next"
		}
		if err := a.Say("%s  %s", head, local(ts, zoneOf(s))); err != nil {
			return err
		}
	}
	return nil
}
