package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func whyCommand(a *app) *cobra.Command {
	var runID string
	cmd := &cobra.Command{
		Use:   "why ID",
		Short: "Tell in one sentence what a workflow waits for",
		Args:  argNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				because, err := c.Run(args[0], runID).Why(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.document(struct {
						WorkflowID string `json:"workflowId"`
						Run        string `json:"run,omitempty"`
						Because    string `json:"because"`
					}{args[0], runID, because})
				}
				return a.say("%s", sentence(because))
			})
		},
	}
	runFlag(cmd, &runID)
	return cmd
}
