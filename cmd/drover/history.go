package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
)

func historyCommand(a *app) *cobra.Command {
	var runID string
	var o drover.HistoryOptions
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the history of a workflow",
		Long: `Print the history of a workflow: event id, time since the start, type, and what matters of the attributes.

With --json each event is one line: {"id":1,"type":"WorkflowStarted","time":"…","attributes":{…}}; with -o yaml each is a
document. With --follow new events are printed as they come, until the run has closed.

The first event of a replay tells which run it repeats and why, the last line of a run that was replayed which run repeats
it. The attempts of a workflow are in drover describe.`,
		Args: argNames("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				return a.history(ctx, c.Run(args[0], runID), o)
			})
		},
	}
	runFlag(cmd, &runID)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with new events until the run has closed")
	return cmd
}

func (a *app) history(ctx context.Context, run *drover.Run, o drover.HistoryOptions) error {
	out := bufio.NewWriter(a.stdout)
	o.OnSoft = func() { fmt.Fprintln(a.stderr, softNote) }
	if !a.json {
		o.OnReplayed = func(run string) {
			fmt.Fprintf(out, "%s replayed as run %s\n", strings.Repeat(" ", indent), word(run, 64))
		}
	}
	var line timeline
	for e, err := range run.History(ctx, o) {
		if err != nil {
			out.Flush()
			return err
		}
		if a.json {
			err = a.writeDocument(out, e)
		} else {
			_, err = fmt.Fprintln(out, line.print(e))
		}
		if err == nil && o.Follow {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}
