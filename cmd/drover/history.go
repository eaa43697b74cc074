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
	var line timeline
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the history of a workflow",
		Long: `Print the history of a workflow: event id, time since the start, type, and what matters of the attributes.

Values are cut so that a line fits the terminal, or to 80 characters elsewhere. --full shows them whole, and text of several lines,
such as a stack, as lines. --compact makes one line "Decision" of the events that lead to a decision, with the id of the last one.

With --json each event is one line: {"id":1,"type":"WorkflowStarted","time":"…","attributes":{…}}; with -o yaml each is a
document. With --follow new events are printed as they come, until the run has closed.

The first event of a replay tells which run it repeats and why, the last line of a run that was replayed which run repeats
it. The attempts of a workflow are in drover describe.`,
		Example: `  drover history order-17 --compact
  drover history order-17 --full --follow`,
		Args: argNames("ID"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.json {
				return refuseFlags(cmd, []string{"compact"}, "but documents are whole: leave it out, or --json and --output")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			line.width = a.width()
			return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
				return a.history(ctx, c.Run(args[0], runID), o, &line)
			})
		},
	}
	runFlag(cmd, &runID)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "go on with new events until the run has closed")
	cmd.Flags().BoolVar(&line.compact, "compact", false, "one line for each decision")
	cmd.Flags().BoolVar(&line.full, "full", false, "values whole, and text of several lines as lines")
	return cmd
}

func (a *app) history(ctx context.Context, run *drover.Run, o drover.HistoryOptions, line *timeline) error {
	out := bufio.NewWriter(a.stdout)
	o.OnSoft = func() { fmt.Fprintln(a.stderr, softNote) }
	if !a.json {
		o.OnReplayed = func(run string) {
			fmt.Fprintf(out, "%s replayed as run %s\n", strings.Repeat(" ", indent), word(run, 64))
		}
	}
	for e, err := range run.History(ctx, o) {
		if err != nil {
			out.Flush()
			return err
		}
		if a.json {
			err = a.writeDocument(out, e)
		} else {
			_, err = out.WriteString(line.print(e))
		}
		if err == nil && o.Follow {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
	if !a.json {
		if _, err := out.WriteString(line.end()); err != nil {
			return err
		}
	}
	return out.Flush()
}
