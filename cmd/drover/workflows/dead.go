package workflows

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func DeadCommand(a *cli.App) *cobra.Command {
	var o drover.DeadOptions
	var count bool
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "List dead letters: what could not be applied, and why",
		Example: `  drover dead --reason unknown-workflow
  drover dead --count`,
		Args: cli.ArgNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("reason") && o.Reason == "" {
				// it is no text here, as that of other commands is
				return cli.Usage(cmd,
					fmt.Errorf("--reason is empty: say what is meant, or leave the flag out"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if count {
					return cli.Lines(a,
						cli.Table{Columns: cli.Columns("REASON", "LETTERS"), None: noLetters},
						deadCounts(ctx, c, o), func(n schemas.DeadCount) []string {
							return []string{cli.Word(n.Reason, cli.Whole), fmt.Sprint(n.Count)}
						})
				}
				return cli.Lines(a, cli.Table{Columns: deadColumns, None: noLetters},
					c.DeadLetters(ctx, o), deadRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Reason, "reason", "", "only with this reason")
	fs.Uint64Var(&o.After, "after", 0, "only after this sequence")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	fs.BoolVar(&count, "count", false, "count them by reason; --limit does not matter")
	return cmd
}

const noLetters = "no dead letters"

var deadColumns = []cli.Column{
	{Head: "SEQ"},
	{Head: "TIME", Drop: 2},
	{Head: "REASON"},
	{Head: "SUBJECT", Keep: 16},
	{Head: "SIZE", Drop: 1},
	{Head: "DETAILS", Keep: 20},
}

func deadCounts(
	ctx context.Context, c *drover.Client, o drover.DeadOptions,
) iter.Seq2[schemas.DeadCount, error] {
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
		fmt.Sprint(e.Sequence), cli.When(e.Time), cli.Word(e.Reason, cli.Whole),
		cli.Word(e.Subject, cli.Whole), cli.Size(len(e.Body)), cli.Sentence(e.Details),
	}
}
