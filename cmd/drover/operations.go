package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// operationsEvery is how often --follow asks.
const operationsEvery = time.Second

func operationsCommand(a *app) *cobra.Command {
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
		Args: argNames(),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if o.Latest < 0 {
				return usage(cmd, fmt.Errorf("--limit is %d: want 0 for all, or more", o.Latest))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Kind = schemas.OperationKind(kind)
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				all, none := c.Operations(ctx, o), "no operations"
				if follow {
					all, none = followed(ctx, c, o), ""
				}
				return a.operations(all, none, follow)
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

var operationColumns = []column{
	{head: "TIME"},
	{head: "KIND"},
	{head: "SUBJECT", keep: 12},
	{head: "BY", keep: 8, drop: 1},
	{head: "REASON", keep: 12},
}

// operations writes operations for people or as documents. Those that are followed are written one
// by one.
func (a *app) operations(
	all iter.Seq2[schemas.OperationEntry, error], none string, follow bool,
) error {
	if !follow {
		return lines(a, table{operationColumns, none}, all, operationRow)
	}
	for e, err := range all {
		if err == nil && a.json {
			err = a.document(e)
		}
		if err != nil {
			return err
		}
		if a.json {
			continue
		}
		r := operationRow(e)
		if err := a.say("%s  %s  %s  %s  %s", r[0], r[1], r[2], r[3], r[4]); err != nil {
			return err
		}
	}
	return nil
}

func operationRow(e schemas.OperationEntry) []string {
	about, reason := "-", "-"
	if e.Subject != "" {
		about = word(e.Subject, whole)
	}
	switch {
	case e.Count > 0 && e.Kind == schemas.OperationScheduleDeleted:
		reason = counted(int(e.Count), "run goes on", "runs go on")
	case e.Count > 0 && (e.Kind == schemas.OperationScheduleTrigger || e.Kind == schemas.OperationScheduleBackfill):
		reason = counted(int(e.Count), "time", "times")
	case e.Count > 0 && e.Slot != 0:
		reason = fmt.Sprintf("%d, the last of %s", e.Count, when(e.Slot))
	case e.Count > 0:
		reason = fmt.Sprint(e.Count)
	}
	if e.Reason != "" {
		reason = map[bool]string{true: "", false: reason + ": "}[reason == "-"] + sentence(e.Reason)
	}
	return []string{when(e.At), word(string(e.Kind), whole), about, word(e.Identity, whole), reason}
}

// followed yields the operations that there are, and then those to come.
func followed(
	ctx context.Context, c *drover.Client, o drover.OperationsOptions,
) iter.Seq2[schemas.OperationEntry, error] {
	return func(yield func(schemas.OperationEntry, error) bool) {
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
