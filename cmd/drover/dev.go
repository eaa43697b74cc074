package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func devCommand(a *app) *cobra.Command {
	f := serverFlags{memory: true}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server in memory, to try things out",
		Long: `Run a server with all roles and an embedded NATS in memory. It is ready in a moment and forgets everything when it ends;
"drover server --store DIR" remembers.`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.external(cmd.Flags()) {
				return usage(cmd, errors.New("--nats or --context is given, but dev has a NATS of its own, and forgets everything: use drover server --nats"))
			}
			return a.serve(cmd, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.register(cmd)
	return cmd
}
