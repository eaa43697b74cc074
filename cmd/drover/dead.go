package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func deadCommand(a *app) *cobra.Command {
	var o drover.DeadOptions
	var count bool
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List dead letters: what could not be applied, and why",
		Example: `  drover dead --reason unknown-workflow
  drover dead --count`,
		Args: argNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("reason") && o.Reason == "" { // it is no text here, as that of other commands is
				return usage(cmd, fmt.Errorf("--reason is empty: say what is meant, or leave the flag out"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				if count {
					return lines(a, table{columns("REASON", "LETTERS"), noLetters}, deadCounts(ctx, c, o), func(n schemas.DeadCount) []string {
						return []string{word(n.Reason, whole), fmt.Sprint(n.Count)}
					})
				}
				return lines(a, table{deadColumns, noLetters}, c.DeadLetters(ctx, o), deadRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Reason, "reason", "", "only with this reason")
	fs.Uint64Var(&o.After, "after", 0, "only behind this sequence")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	fs.BoolVar(&count, "count", false, "count them by reason; --limit does not matter")
	return cmd
}

const noLetters = "no dead letters"

var deadColumns = []column{{head: "SEQ"}, {head: "TIME", drop: 2}, {head: "REASON"}, {head: "SUBJECT", keep: 16}, {head: "SIZE", drop: 1}, {head: "DETAILS", keep: 20}}

func deadCounts(ctx context.Context, c *drover.Client, o drover.DeadOptions) iter.Seq2[schemas.DeadCount, error] {
	return func(yield func(schemas.DeadCount, error) bool) {
		counts, err := c.CountDeadLetters(ctx, o)
		if err != nil {
			yield(schemas.DeadCount{}, err)
			return
		}
		for _, n := range counts {
			if !yield(n, nil) {
				return
			}
		}
	}
}

func deadRow(e schemas.DeadEntry) []string {
	return []string{
		fmt.Sprint(e.Sequence), when(e.Time), word(e.Reason, whole), word(e.Subject, whole), size(len(e.Body)), sentence(e.Details),
	}
}
