package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func deadCommand(a *app) *cobra.Command {
	var o drover.DeadOptions
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List dead letters: what could not be applied, and why",
		Args:  argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				heads := []string{"SEQ", "TIME", "REASON", "SUBJECT", "SIZE", "DETAILS"}
				return lines(a, heads, c.DeadLetters(ctx, o), deadRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Reason, "reason", "", "only with this reason")
	fs.Uint64Var(&o.After, "after", 0, "only behind this sequence")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

func deadRow(e schemas.DeadEntry) []string {
	return []string{
		fmt.Sprint(e.Sequence), when(e.Time), word(e.Reason, 40), word(e.Subject, 120), size(len(e.Body)), sentence(e.Details),
	}
}
