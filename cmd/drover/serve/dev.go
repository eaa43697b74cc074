package serve

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/server"
)

func DevCommand(a *cli.App) *cobra.Command {
	f := ServerFlags{memory: true, dev: true}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a server in memory, to try things out",
		Long: `Run a server with all roles and an embedded NATS in memory. It is ready in a moment
and forgets everything when it ends; "drover server --store DIR" remembers. When it is ready it
says which command to type next; --log-level info tells what it does.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.External(cmd.Flags()) {
				return cli.Usage(cmd,
					errors.New("--nats or --context is given, but dev has a NATS of its own, and "+
						"forgets everything: use drover server --nats"))
			}
			return runServer(a, cmd, &f)
		},
	}
	cmd.Flags().SortFlags = false
	f.register(cmd)
	return cmd
}

// devLine is the ready line of dev: where it is, and the command to type next, with the flags that
// it needs to find this server.
func devLine(r server.Info) string {
	next := "drover start hello --wait"
	if r.URL != cli.DefaultNATS || os.Getenv("NATS_URL") != "" || os.Getenv(cli.ContextEnv) != "" {
		next += " --nats " + r.URL
	}
	if r.Namespace != server.DefaultNamespace {
		next += " --namespace " + r.Namespace
	}
	return fmt.Sprintf(
		"drover is ready at %s, and forgets everything when it ends; next, in another terminal: %s",
		r.URL, next)
}
