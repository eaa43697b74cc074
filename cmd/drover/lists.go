package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

func tasklistCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasklist",
		Short: "List the task lists",
		Long:  `List the task lists of the namespace: the queues of activity tasks.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("list is missing")
			}
			return noCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(tasklistList(a))
	return cmd
}

func tasklistList(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the task lists: tasks that wait, tasks in work, workers that wait",
		Long: `List the task lists of the namespace.

PENDING tasks wait for a worker; WORKING ones are with one, or were with one that died less than ten seconds ago. WORKERS is
how many workers wait for a task; busy ones do not. OLDEST is how long the oldest task that is not done has been there.`,
		Args: argNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, err := c.TaskLists(ctx)
				if err != nil {
					return err
				}
				now := time.Now()
				each := func(yield func(schemas.TaskListInfo, error) bool) {
					for _, l := range all {
						if !yield(l, nil) {
							return
						}
					}
				}
				return lines(a, table{taskListColumns, "no task lists: a worker makes its own, or the first task"}, each, func(l schemas.TaskListInfo) []string {
					return taskListRow(l, now)
				})
			})
		},
	}
}

var taskListColumns = []column{{head: "LIST", keep: 20}, {head: "PENDING"}, {head: "WORKING"}, {head: "WORKERS"}, {head: "OLDEST"}}

func taskListRow(l schemas.TaskListInfo, now time.Time) []string {
	oldest := "-"
	if l.OldestAt != 0 {
		oldest = span(max(now.Sub(l.OldestAt.Time()), 0))
	}
	return []string{word(l.List, whole), fmt.Sprint(l.Pending), fmt.Sprint(l.Working), fmt.Sprint(l.Workers), oldest}
}
