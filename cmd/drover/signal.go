package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func signalCommand(a *app) *cobra.Command {
	var input inputFlag
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a signal to the open run of a workflow",
		Args:  argNames("ID", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := input.read(cmd, a.stdin)
			if err != nil {
				return err
			}
			id, name := args[0], args[1]
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				if err := c.Run(id, "").Signal(ctx, name, body); err != nil {
					return err
				}
				if a.json {
					return a.document(struct {
						WorkflowID string `json:"workflowId"`
						Name       string `json:"name"`
					}{id, name})
				}
				return a.say("signaled %s with %s", word(id, 256), word(name, 256))
			})
		},
	}
	input.register(cmd, "the signal's input")
	return cmd
}
