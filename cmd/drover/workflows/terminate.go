package workflows

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func TerminateCommand(a *cli.App) *cobra.Command {
	details := cli.InputFlag{Name: "details"}
	var childPolicy string
	var o drover.TerminateOptions
	cmd := operatorCommand(a, "terminate", "terminated",
		"End a workflow at once, without asking its decider",
		func(r *drover.Run, ctx context.Context, reason string) error {
			o.Reason = reason
			return r.Terminate(ctx, &o)
		})
	cmd.Long = `End a workflow at once, without asking its decider. Activities that run are told
to stop, and children get what the child policy says. "drover cancel ID" asks first.`
	// PreRunE comes before a connection is made.
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		body, err := details.Read(cmd, a.Stdin)
		if err != nil {
			return err
		}
		if body != nil {
			o.Details = body
		}
		o.ChildPolicy, err = cli.ParseChildPolicy(cmd, childPolicy)
		return err
	}
	details.Register(cmd, "details for the history")
	cmd.Flags().StringVar(&childPolicy, "child-policy", "",
		"what becomes of open children: terminate, cancel or abandon (default what the workflow was started with)")
	return cmd
}
