package main

import (
	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func resumeCommand(a *app) *cobra.Command {
	return operatorCommand(a, "resume", "resumed", "Go on with a workflow that was paused or parked", (*drover.Run).Resume)
}
