package workflows

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func ListCommand(a *cli.App) *cobra.Command {
	var f cli.FilterFlags
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows",
		Long: `List workflows that match all of the flags, in no particular order.

A table has 50 of them, unless --limit says otherwise, and documents have all. Children are left
out, the inner parts of flows among them, unless --all, --parent or --id is given. On a terminal a
table fits the width: what is too long is cut, and columns are left out if they must be, RUN
first. Elsewhere values are whole.

Times are written as 2026-01-02T03:04:05Z, as a day, or as 90m for that long ago.`,
		Example: `  drover list --status failed --closed-after 24h
  drover list --type order --tag vip -o yaml`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.Options(cmd)
			if err != nil {
				return err
			}
			o.Limit, o.TopLevel = limit, topLevel(o, all)
			if o.Limit == 0 && !a.JSON && !cmd.Flags().Changed("limit") {
				o.Limit = usualLimit
			}
			return a.Client(cmd,
				func(ctx context.Context, c *drover.Client) error { return showList(ctx, a, c, o) })
		},
	}
	f.Register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "children, too")
	cmd.Flags().IntVar(&limit, "limit", 0,
		"at most so many; 0 for all (default 50 in a table, all as documents)")
	return cmd
}

// usualLimit is how many workflows a table has if nothing is said.
const usualLimit = 50

// topLevel tells whether children are left out: not if somebody asks for one.
func topLevel(o drover.ListOptions, all bool) bool {
	return !all && o.Parent == "" && o.WorkflowID == ""
}

// childrenLeftOut is said if nothing but children match.
const childrenLeftOut = "children are left out: --all"

// showList shows workflows, and says what it leaves out.
func showList(ctx context.Context, a *cli.App, c *drover.Client, o drover.ListOptions) error {
	most, n := o.Limit, 0
	if most > 0 && !a.JSON {
		o.Limit++ // to know whether there are more
	}
	shown := func(yield func(schemas.ExecutionInfo, error) bool) {
		for e, err := range c.List(ctx, o) {
			if n++; err == nil && most > 0 && n > most {
				return
			}
			if !yield(e, err) {
				return
			}
		}
	}
	if err := cli.Lines(a, cli.Table{Columns: listColumns(o)}, shown, listRow); err != nil ||
		a.JSON {
		return err
	}
	switch {
	case most > 0 && n > most:
		fmt.Fprintf(a.Stderr, "the first %d are shown: --limit 0 shows all\n", most)
	case n == 0:
		words := "no workflows"
		if left, err := childrenMatch(ctx, c, o); err != nil {
			return err
		} else if left {
			words += "; " + childrenLeftOut
		}
		fmt.Fprintln(a.Stderr, words)
	}
	return nil
}

// childrenMatch tells whether children would match that are left out.
func childrenMatch(ctx context.Context, c *drover.Client, o drover.ListOptions) (bool, error) {
	if !o.TopLevel {
		return false, nil
	}
	o.TopLevel, o.Limit = false, 1
	for _, err := range c.List(ctx, o) {
		return err == nil, err
	}
	return false, nil
}

// listColumns are those of list: if all lines are of one id, that is left out and not the run.
func listColumns(o drover.ListOptions) []cli.Column {
	all := []cli.Column{
		{Head: "ID", Keep: 26},
		{Head: "RUN", Drop: 1},
		{Head: "TYPE", Keep: 8},
		{Head: "STATUS"},
		{Head: "STARTED", Drop: 4},
		{Head: "TOOK", Drop: 3},
		{Head: "EVENTS", Drop: 2},
	}
	if o.WorkflowID != "" {
		all[0].Drop, all[1].Drop = 1, 0
	}
	return all
}

func listRow(e schemas.ExecutionInfo) []string {
	took := "-"
	if e.ClosedAt != 0 {
		took = cli.Span(e.ClosedAt.Sub(e.StartedAt).Truncate(time.Millisecond))
	}
	return []string{
		cli.Word(e.WorkflowID, cli.Whole), cli.Word(e.Run, cli.Whole), cli.Word(e.Type, cli.Whole),
		string(e.Status), cli.When(e.StartedAt), took, fmt.Sprint(e.Events),
	}
}
