package workflows

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func CountCommand(a *cli.App) *cobra.Command {
	var f cli.FilterFlags
	var all bool
	cmd := &cobra.Command{
		Use:   "count",
		Short: "Count workflows",
		Long: `Count the workflows that "drover list" with the same flags would show, without a
limit. Children are left out, the inner parts of flows among them, unless --all, --parent or --id
is given.

The server counts for up to five seconds; if it is not through by then, the number is a lower bound.`,
		Example: `  drover count --status open --type order
  drover count --status failed --closed-after 24h`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.Options(cmd)
			if err != nil {
				return err
			}
			o.TopLevel = topLevel(o, all)
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				n, truncated, err := c.Count(ctx, o)
				switch {
				case err != nil:
					return err
				case a.JSON:
					return a.Document(struct {
						Count     int64 `json:"count"`
						Truncated bool  `json:"truncated,omitempty"`
					}{n, truncated})
				case truncated:
					return a.Say("%d or more", n)
				}
				if n == 0 {
					if left, err := childrenMatch(ctx, c, o); err != nil {
						return err
					} else if left {
						fmt.Fprintln(a.Stderr, childrenLeftOut)
					}
				}
				return a.Say("%d", n)
			})
		},
	}
	f.Register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "children, too")
	return cmd
}
