package workflows

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func PauseCommand(a *cli.App) *cobra.Command {
	return operatorCommand(a, "pause", "paused",
		"Pause a workflow: its decider is not asked; events still come in", (*drover.Run).Pause)
}

func HoldCommand(a *cli.App) *cobra.Command {
	return operatorCommand(a, "hold", "held", "Keep a workflow from being asked to continue as new",
		(*drover.Run).Hold)
}

func ReleaseCommand(a *cli.App) *cobra.Command {
	return operatorCommand(a, "release", "released", "End a hold", (*drover.Run).Release)
}

// operatorCommand is a command that changes a run by the hand of an operator. The run is looked up
// first, so that what is printed is what was changed.
func operatorCommand(
	a *cli.App, verb, done, short string, do func(*drover.Run, context.Context, string) error,
) *cobra.Command {
	var runID, reason string
	cmd := &cobra.Command{
		Use:   verb + " ID",
		Short: short,
		Args:  cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				run, already := c.Run(args[0], runID), ""
				if runID == "" {
					now, err := run.Describe(ctx)
					if err != nil {
						if e, ok := errors.AsType[*drover.Error](err); ok {
							e.Op = verb // the question is a step of it
						}
						return err
					}
					run, already = c.Run(args[0], now.Execution.Run), alreadySo(verb, now)
				}
				if err := do(run, ctx, reason); err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						WorkflowID string `json:"workflowId"`
						Run        string `json:"run"`
						Unchanged  bool   `json:"unchanged,omitempty"`
					}{run.ID, run.RunID, already != ""})
				}
				if already != "" {
					return a.Say("nothing was done: %s run %s %s",
						cli.Word(run.ID, 256), run.RunID, already)
				}
				return a.Say("%s %s run %s", done, cli.Word(run.ID, 256), run.RunID)
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the history")
	return cmd
}

// alreadySo tells why a request changes nothing at a run, "" if it does. The owner of the run takes
// such a request, and writes nothing.
func alreadySo(verb string, d *schemas.DescribeResponse) string {
	switch status := d.Execution.Status; {
	case verb == "pause" && status == schemas.StatusPaused:
		return "is paused already"
	case verb == "resume" && status == schemas.StatusOpen:
		return "is not paused"
	case verb == "hold" && !status.Closed() && d.Held != nil:
		return "is held already"
	case verb == "release" && !status.Closed() && d.Held == nil:
		return "is not held"
	case verb == "cancel" && d.CancelRequested:
		return "is asked to end already"
	}
	return ""
}
