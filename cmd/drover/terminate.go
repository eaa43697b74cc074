package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func terminateCommand(a *app) *cobra.Command {
	details := inputFlag{name: "details"}
	var childPolicy string
	var o drover.TerminateOptions
	cmd := operatorCommand(a, "terminate", "terminated", "End a workflow at once, without asking its decider", func(r *drover.Run, ctx context.Context, reason string) error {
		o.Reason = reason
		return r.Terminate(ctx, &o)
	})
	cmd.Long = `End a workflow at once, without asking its decider. Activities that run are told to stop, and children get what the child
policy says. "drover cancel ID" asks first.`
	// PreRunE comes before a connection is made.
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		body, err := details.read(cmd, a.stdin)
		if err != nil {
			return err
		}
		if body != nil {
			o.Details = body
		}
		o.ChildPolicy, err = parseChildPolicy(cmd, childPolicy)
		return err
	}
	details.register(cmd, "details for the history")
	cmd.Flags().StringVar(&childPolicy, "child-policy", "", "what becomes of open children: terminate, cancel or abandon (default what the workflow was started with)")
	return cmd
}
