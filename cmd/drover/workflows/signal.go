package workflows

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func SignalCommand(a *cli.App) *cobra.Command {
	var input cli.InputFlag
	cmd := &cobra.Command{
		Use:   "signal ID NAME",
		Short: "Send a signal to the open run of a workflow",
		Args:  cli.ArgNames("ID", "NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := input.Read(cmd, a.Stdin)
			if err != nil {
				return err
			}
			id, name := args[0], args[1]
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if err := c.Run(id, "").Signal(ctx, name, body); err != nil {
					return err
				}
				if a.JSON {
					return a.Document(struct {
						WorkflowID string `json:"workflowId"`
						Name       string `json:"name"`
					}{id, name})
				}
				return a.Say("signaled %s with %s", cli.Word(id, 256), cli.Word(name, 256))
			})
		},
	}
	input.Register(cmd, "the signal's input")
	return cmd
}
