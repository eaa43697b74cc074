package workflows

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas/ops"
)

func CountCommand(a *cli.App) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "count [QUERY]",
		Short: "Count workflows",
		Long: `Count the workflows that "drover list" with the same query and flags would show, without a
limit, or those of each group: GROUP BY takes one or two of status, type, parent, reason, an
attribute, started BY hour or day, closed BY hour or day.

Children are left out, the inner parts of flows among them, unless --all, --parent or --id is given,
or the query asks for an id, a run or a parent. With --scan the server counts for up to five
seconds; if it is not through by then, the number is a lower bound.`,
		Example: `  drover count --status open --type order
  drover count "closed > now-24h GROUP BY type, status"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.search(cmd, args)
			if err != nil {
				return err
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				if s.scan {
					return countScan(ctx, a, c, s)
				}
				return countIndex(ctx, a, c, s)
			})
		},
	}
	f.register(cmd)
	return cmd
}

// countDocument is the answer without groups.
type countDocument struct {
	Count     int64 `json:"count"`
	Truncated bool  `json:"truncated,omitempty"`
}

func countScan(ctx context.Context, a *cli.App, c *drover.Client, s *search) error {
	o := s.o
	o.TopLevel = s.top
	n, truncated, err := c.Count(ctx, o)
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.Document(countDocument{n, truncated})
	case truncated:
		return a.Say("%d or more", n)
	}
	return sayCount(ctx, a, c, s, n)
}

// sayCount says a number, and what it leaves out.
func sayCount(ctx context.Context, a *cli.App, c *drover.Client, s *search, n int64) error {
	if n == 0 {
		if left, err := s.childrenMatch(ctx, c); err != nil {
			return err
		} else if left {
			fmt.Fprintln(a.Stderr, childrenLeftOut)
		}
	}
	return a.Say("%d", n)
}

func countIndex(ctx context.Context, a *cli.App, c *drover.Client, s *search) error {
	found, err := c.Groups(ctx, s.text, s.options(s.top, 0))
	switch {
	case err != nil:
		return orScan(err)
	case len(s.query.Group) == 0 && a.JSON:
		return a.Document(countDocument{Count: found.Total})
	case len(s.query.Group) == 0:
		err = sayCount(ctx, a, c, s, found.Total)
	default:
		err = showGroups(a, found)
	}
	if err != nil || a.JSON {
		return err
	}
	if n := int64(len(found.Groups)); n < found.All {
		fmt.Fprintf(a.Stderr, "the largest %d of %d groups are shown\n", n, found.All)
	}
	s.sayState(a.Stderr)
	return nil
}

// showGroups shows the groups as a table, or as documents.
func showGroups(a *cli.App, found *ops.GroupsResponse) error {
	var columns []cli.Column
	for _, name := range found.Columns {
		columns = append(columns, cli.Column{Head: strings.ToUpper(name), Keep: 8})
	}
	columns = append(columns, cli.Column{Head: "COUNT"})
	all := func(yield func(ops.RunGroup, error) bool) {
		for g := range slices.Values(found.Groups) {
			if !yield(g, nil) {
				return
			}
		}
	}
	return cli.Lines(a, cli.Table{Columns: columns, None: "no workflows"}, all,
		func(g ops.RunGroup) []string {
			var row []string
			for _, v := range g.Values {
				if v == "" {
					v = "-"
				}
				row = append(row, cli.Word(v, cli.Whole))
			}
			return append(row, fmt.Sprint(g.Count))
		})
}
