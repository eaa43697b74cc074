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
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows",
		Long: `List workflows that match all of the flags, in no particular order.

Times are written as 2026-01-02T03:04:05Z, as a day, or as 90m for that long ago.`,
		Example: `  drover list --status failed --closed-after 24h
  drover list --type order --tag vip -o yaml`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options(cmd)
			if err != nil {
				return err
			}
			o.Limit = limit
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				heads := []string{"ID", "RUN", "TYPE", "STATUS", "STARTED", "TOOK", "EVENTS"}
				return lines(a, heads, c.List(ctx, o), listRow)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many (default all)")
	return cmd
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
	return []string{word(e.WorkflowID, 60), word(e.Run, 64), word(e.Type, 40), string(e.Status), when(e.StartedAt), took, fmt.Sprint(e.Events)}
}
