package main

import "github.com/spf13/cobra"

func devCommand(a *app) *cobra.Command {
	f := serverFlags{memory: true}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server in memory, to try things out",
		Long: `Run a server with all roles and an embedded NATS in memory. It is ready in a moment and forgets everything when it ends;
"drover server --store DIR" remembers.`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd, &f) },
	}
	cmd.Flags().SortFlags = false
	f.register(cmd)
	return cmd
}
