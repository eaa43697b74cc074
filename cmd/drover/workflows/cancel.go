package workflows

import (
	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func CancelCommand(a *cli.App) *cobra.Command {
	cmd := operatorCommand(a, "cancel", "requested the cancellation of",
		"Ask a workflow to end: its decider may clean up first, or go on", (*drover.Run).Cancel)
	cmd.Long = `Ask a workflow to end. The request stands in the history and wakes the decider,
which may clean up first, or go on.

"drover result ID" waits for the end; "drover terminate ID" ends a workflow without asking.`
	return cmd
}
