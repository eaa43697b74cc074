package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

// statuses are the words of --status.
var statuses = []schemas.Status{
	schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled,
	schemas.StatusTerminated, schemas.StatusTimedOut, schemas.StatusContinuedAsNew,
}

func listCommand(a *app) *cobra.Command {
	var o drover.ListOptions
	var status string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List workflows",
		Args:  argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, s := range statuses {
				if string(s) == status {
					o.Status = s
				}
			}
			if status != string(o.Status) {
				return usage(cmd, fmt.Errorf("--status is %q: use one of %v", status, statuses))
			}
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				heads := []string{"ID", "RUN", "TYPE", "STATUS", "STARTED", "TOOK", "EVENTS"}
				return lines(a, heads, c.List(ctx, o), listRow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&status, "status", "", "only with this status: open, paused, completed, failed, canceled, terminated, timedOut, continuedAsNew")
	fs.StringVar(&o.Type, "type", "", "only of this type")
	fs.StringVar(&o.Prefix, "prefix", "", "only ids that begin so")
	fs.StringVar(&o.WorkflowID, "id", "", "only the runs of this workflow id")
	fs.IntVar(&o.Limit, "limit", 0, "at most so many (default all)")
	return cmd
}

func listRow(e schemas.ExecutionInfo) []string {
	took := "-"
	if e.ClosedAt != 0 {
		took = span(e.ClosedAt.Sub(e.StartedAt).Truncate(time.Millisecond))
	}
	return []string{word(e.WorkflowID, 60), word(e.Run, 64), word(e.Type, 40), string(e.Status), when(e.StartedAt), took, fmt.Sprint(e.Events)}
}
