package workflows

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func DeleteCommand(a *cli.App) *cobra.Command {
	var runID, reason string
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Purge a closed run now, whatever its retention says",
		Long: `Purge a run that has closed, without waiting for its retention. The runs of its chain
before it go with it, and the parts of its flow. Its large payloads go about a day later, if nothing
else names them.

A run stays for two minutes after its end in any case, and until all that it had to do is done; the
refusal says what it waits for. An open run is not deleted: "drover terminate ID" ends it first.
The master of the namespace answers: a server with the role ops. "drover operations" tells who
deleted what.`,
		Args: cli.ArgNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				r, err := c.Run(args[0], runID).Delete(ctx, reason)
				if err != nil {
					return err
				}
				if r.V = 0; a.JSON {
					return a.Document(r)
				}
				with := ""
				switch {
				case r.Soft:
					with = ", which was in the memory of the master only"
				case r.Runs > 1:
					more := cli.Counted(r.Runs-1, "run that goes", "runs that go")
					with = " and " + more + " with it"
				}
				return a.Say("deleted %s run %s%s", cli.Word(r.WorkflowID, 256), r.Run, with)
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the log of operations")
	return cmd
}
