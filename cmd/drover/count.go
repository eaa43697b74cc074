package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func countCommand(a *app) *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use:   "count",
		Short: "Count workflows",
		Long: `Count the workflows that "drover list" with the same flags would show.

The server counts for up to five seconds; if it is not through by then, the number is a lower bound.`,
		Example: `  drover count --status open --type order
  drover count --status failed --closed-after 24h`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				n, truncated, err := c.Count(ctx, o)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.document(struct {
						Count     int64 `json:"count"`
						Truncated bool  `json:"truncated,omitempty"`
					}{n, truncated})
				case truncated:
					return a.say("%d or more", n)
				default:
					return a.say("%d", n)
				}
			})
		},
	}
	f.register(cmd)
	return cmd
}
