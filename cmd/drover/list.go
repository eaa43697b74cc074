package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// statuses are the words of --status.
var statuses = []schemas.Status{
	schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled,
	schemas.StatusTerminated, schemas.StatusTimedOut, schemas.StatusContinuedAsNew, schemas.StatusClosed,
}

func statusWords() []string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = string(s)
	}
	return words
}

func listCommand(a *app) *cobra.Command {
	var f filterFlags
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows",
		Long: `List workflows that match all of the flags, in no particular order.

A table has 50 of them, unless --limit says otherwise, and documents have all. Children are left out, the inner parts of flows among
them, unless --all, --parent or --id is given. On a terminal a table fits the width: what is too long is cut, and columns are
left out if they must be, RUN first. Elsewhere values are whole.

Times are written as 2026-01-02T03:04:05Z, as a day, or as 90m for that long ago.`,
		Example: `  drover list --status failed --closed-after 24h
  drover list --type order --tag vip -o yaml`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			o.Limit, o.TopLevel = limit, topLevel(o, all)
			if o.Limit == 0 && !a.json && !cmd.Flags().Changed("limit") {
				o.Limit = usualLimit
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error { return a.list(ctx, c, o) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "children, too")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many; 0 for all (default 50 in a table, all as documents)")
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

// list shows workflows, and says what it leaves out.
func (a *app) list(ctx context.Context, c *drover.Client, o drover.ListOptions) error {
	most, n := o.Limit, 0
	if most > 0 && !a.json {
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
	if err := lines(a, table{columns: listColumns(o)}, shown, listRow); err != nil || a.json {
		return err
	}
	switch {
	case most > 0 && n > most:
		fmt.Fprintf(a.stderr, "the first %d are shown: --limit 0 shows all\n", most)
	case n == 0:
		words := "no workflows"
		if left, err := childrenMatch(ctx, c, o); err != nil {
			return err
		} else if left {
			words += "; " + childrenLeftOut
		}
		fmt.Fprintln(a.stderr, words)
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
func listColumns(o drover.ListOptions) []column {
	all := []column{
		{head: "ID", keep: 26},
		{head: "RUN", drop: 1},
		{head: "TYPE", keep: 8},
		{head: "STATUS"},
		{head: "STARTED", drop: 4},
		{head: "TOOK", drop: 3},
		{head: "EVENTS", drop: 2},
	}
	if o.WorkflowID != "" {
		all[0].drop, all[1].drop = 1, 0
	}
	return all
}

// filterFlags are those of list and count.
type filterFlags struct {
	o                                                      drover.ListOptions
	status                                                 string
	startedAfter, startedBefore, closedAfter, closedBefore timeFlag
}

func (f *filterFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.status, "status", "", "only with this status: "+strings.Join(statusWords(), ", ")+"; closed is any but open and paused")
	fs.StringVar(&f.o.Type, "type", "", "only of this type")
	fs.StringVar(&f.o.Prefix, "prefix", "", "only ids that begin so")
	fs.StringVar(&f.o.WorkflowID, "id", "", "only the runs of this workflow id")
	fs.StringVar(&f.o.Tag, "tag", "", "only with this tag")
	fs.StringVar(&f.o.Parent, "parent", "", "only children of this workflow id")
	fs.Var(&f.startedAfter, "started-after", "only started after this time")
	fs.Var(&f.startedBefore, "started-before", "only started before this time")
	fs.Var(&f.closedAfter, "closed-after", "only closed after this time")
	fs.Var(&f.closedBefore, "closed-before", "only closed before this time")
}

func (f *filterFlags) options(cmd *cobra.Command) (drover.ListOptions, error) {
	o := f.o
	if f.status != "" && !slices.Contains(statuses, schemas.Status(f.status)) {
		return o, usage(cmd, fmt.Errorf("--status is %q: use one of %v", f.status, statuses))
	}
	o.Status = schemas.Status(f.status)
	o.StartedAfter, o.StartedBefore = f.startedAfter.value, f.startedBefore.value
	o.ClosedAfter, o.ClosedBefore = f.closedAfter.value, f.closedBefore.value
	return o, nil
}

func listRow(e schemas.ExecutionInfo) []string {
	took := "-"
	if e.ClosedAt != 0 {
		took = span(e.ClosedAt.Sub(e.StartedAt).Truncate(time.Millisecond))
	}
	return []string{word(e.WorkflowID, whole), word(e.Run, whole), word(e.Type, whole), string(e.Status), when(e.StartedAt), took, fmt.Sprint(e.Events)}
}
