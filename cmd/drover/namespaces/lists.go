package namespaces

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func TasklistCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tasklist",
		Short: "List the task lists",
		Long:  `List the task lists of the namespace: the queues of activity tasks.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("list is missing")
			}
			return cli.NoCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(tasklistList(a))
	return cmd
}

func tasklistList(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the task lists: tasks that wait, tasks in work, workers that wait",
		Long: `List the task lists of the namespace.

PENDING tasks wait for a worker; WORKING ones are with one, or were with one that died less than
ten seconds ago. WORKERS is how many workers wait for a task; busy ones do not. OLDEST is how long
the oldest task that is not done has been there.`,
		Args: cli.ArgNames(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
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
				return cli.Lines(a, cli.Table{
					Columns: taskListColumns,
					None:    "no task lists: a worker makes its own, or the first task",
				}, each, func(l schemas.TaskListInfo) []string {
					return TaskListRow(l, now)
				})
			})
		},
	}
}

var taskListColumns = []cli.Column{
	{Head: "LIST", Keep: 20},
	{Head: "PENDING"},
	{Head: "WORKING"},
	{Head: "WORKERS"},
	{Head: "OLDEST"},
}

// TaskListRow is a row of the table of task lists.
func TaskListRow(l schemas.TaskListInfo, now time.Time) []string {
	oldest := "-"
	if l.OldestAt != 0 {
		oldest = cli.Span(max(now.Sub(l.OldestAt.Time()), 0))
	}
	return []string{
		cli.Word(l.List, cli.Whole), fmt.Sprint(l.Pending), fmt.Sprint(l.Working),
		fmt.Sprint(l.Workers), oldest,
	}
}
