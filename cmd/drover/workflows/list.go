package workflows

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func ListCommand(a *cli.App) *cobra.Command {
	var f searchFlags
	var limit int
	var watch bool
	cmd := &cobra.Command{
		Use:   "list [QUERY]",
		Short: "List workflows",
		Long: `List workflows that match the query and all of the flags, those that started last
first.

A table has 50 of them, unless --limit or the query says otherwise, and documents have all. Children
are left out, the inner parts of flows among them, unless --all, --parent or --id is given, or the
query asks for an id, a run or a parent. On a terminal a table fits the width: what is too long is
cut, and columns are left out if they must be, RUN first. Elsewhere values are whole.

Times are written as 2026-01-02T03:04:05Z, as a day, or as 90m for that long ago, in a query as
now-90m.`,
		Example: `  drover list --status failed --closed-after 24h
  drover list "type = 'order' AND tag = 'vip' ORDER BY took DESC" -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.search(cmd, args)
			if err != nil {
				return err
			}
			switch {
			case len(s.query.Group) > 0:
				return cli.Usage(cmd, fmt.Errorf("GROUP BY counts: say it to drover count"))
			case watch && s.scan:
				return cli.Usage(cmd, fmt.Errorf("--watch needs the index: leave out --scan"))
			}
			if limit == 0 && s.query.Limit == 0 && !a.JSON && !cmd.Flags().Changed("limit") {
				limit = usualLimit
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if watch {
					return watchList(ctx, a, c, s, limit)
				}
				return showList(ctx, a, c, s, limit)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0,
		"at most so many; 0 for all (default 50 in a table, all as documents)")
	cmd.Flags().BoolVar(&watch, "watch", false,
		"go on with those that begin or change their status, until Ctrl-C")
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
func showList(
	ctx context.Context, a *cli.App, c *drover.Client, s *search, most int,
) error {
	ask, n := most, 0
	if most > 0 && !a.JSON {
		ask++ // to know whether there are more
	}
	shown := func(yield func(ops.FoundRun, error) bool) {
		for r, err := range s.find(ctx, c, s.top, ask) {
			if n++; err == nil && most > 0 && n > most {
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
	if err := cli.Lines(a, cli.Table{Columns: listColumns(s.o)}, shown, foundRow); err != nil ||
		a.JSON {
		return err
	}
	switch {
	case most > 0 && n > most:
		fmt.Fprintf(a.Stderr, "the first %d are shown: --limit 0 shows all\n", most)
	case n == 0:
		words := "no workflows"
		if left, err := s.childrenMatch(ctx, c); err != nil {
			return err
		} else if left {
			words += "; " + childrenLeftOut
		}
		fmt.Fprintln(a.Stderr, words)
	}
	s.sayState(a.Stderr)
	return nil
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

func foundRow(r ops.FoundRun) []string { return listRow(r.ExecutionInfo) }

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
