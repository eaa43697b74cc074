package workflows

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas/ops"
)

// operationsEvery is how often --follow asks.
const operationsEvery = time.Second

func OperationsCommand(a *cli.App) *cobra.Command {
	var o drover.OperationsOptions
	var kind string
	var follow bool
	cmd := &cobra.Command{
		Use:   "operations",
		Short: "List what schedules, recycles and operators did",
		Long: `List what the namespace did by itself, and what operators had it do: schedules
that were changed, times that were missed, always-on workflows that began
anew, recycles. The latest is the last. The master of the namespace answers: a
server with the role ops.`,
		Example: `  drover operations --kind slotsMissed
  drover operations --follow --json`,
		Args: cli.ArgNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.Latest < 0 {
				return cli.Usage(cmd,
					fmt.Errorf("--limit is %d: want 0 for all, or more", o.Latest))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Kind = ops.OperationKind(kind)
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, none := c.Operations(ctx, o), "no operations"
				if follow {
					all, none = followed(ctx, c, o), ""
				}
				return showOperations(a, all, none, follow)
			})
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&kind, "kind", "", "only those of this kind, such as slotsMissed")
	fs.IntVar(&o.Latest, "limit", 100, "the latest so many; 0 for all")
	fs.BoolVar(&follow, "follow", false, "go on with those to come, until Ctrl-C")
	return cmd
}

var operationColumns = []cli.Column{
	{Head: "TIME"},
	{Head: "KIND"},
	{Head: "SUBJECT", Keep: 12},
	{Head: "BY", Keep: 8, Drop: 1},
	{Head: "REASON", Keep: 12},
}

// showOperations writes operations for people or as documents. Those that are followed are written
// one by one.
func showOperations(
	a *cli.App, all iter.Seq2[ops.OperationEntry, error], none string, follow bool,
) error {
	if !follow {
		return cli.Lines(a, cli.Table{Columns: operationColumns, None: none}, all, OperationRow)
	}
	for e, err := range all {
		if err == nil && a.JSON {
			err = a.Document(e)
		}
		if err != nil {
			return err
		}
		if a.JSON {
			continue
		}
		r := OperationRow(e)
		if err := a.Say("%s  %s  %s  %s  %s", r[0], r[1], r[2], r[3], r[4]); err != nil {
			return err
		}
	}
	return nil
}

// OperationRow is a row of the table of operations.
func OperationRow(e ops.OperationEntry) []string {
	about, reason := "-", "-"
	if e.Subject != "" {
		about = cli.Word(e.Subject, cli.Whole)
	}
	switch {
	case e.Count > 0 && e.Kind == ops.OperationScheduleDeleted:
		reason = cli.Counted(int(e.Count), "run goes on", "runs go on")
	case e.Count > 0 && (e.Kind == ops.OperationScheduleTrigger || e.Kind == ops.OperationScheduleBackfill):
		reason = cli.Counted(int(e.Count), "time", "times")
	case e.Count > 0 && e.Slot != 0:
		reason = fmt.Sprintf("%d, the last of %s", e.Count, cli.When(e.Slot))
	case e.Count > 0:
		reason = fmt.Sprint(e.Count)
	}
	if e.Reason != "" {
		reason = map[bool]string{true: "", false: reason + ": "}[reason == "-"] +
			cli.Sentence(e.Reason)
	}
	return []string{
		cli.When(e.At), cli.Word(string(e.Kind), cli.Whole), about, cli.Word(e.Identity, cli.Whole),
		reason,
	}
}

// followed yields the operations that there are, and then those to come.
func followed(
	ctx context.Context, c *drover.Client, o drover.OperationsOptions,
) iter.Seq2[ops.OperationEntry, error] {
	return func(yield func(ops.OperationEntry, error) bool) {
		for {
			for e, err := range c.Operations(ctx, o) {
				if err != nil && ctx.Err() != nil || !yield(e, err) || err != nil {
					return
				}
				o.After, o.Latest = e.Sequence, 0
			}
			if sleep.For(ctx, operationsEvery) != nil {
				return
			}
		}
	}
}
