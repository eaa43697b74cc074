package workflows

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
)

func HistoryCommand(a *cli.App) *cobra.Command {
	var runID string
	var o drover.HistoryOptions
	var line Timeline
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "Print the history of a workflow",
		Long: `Print the history of a workflow: event id, time since the start, type, and what
matters of the attributes.

Values are cut so that a line fits the terminal, or to 80 characters elsewhere. --full shows them
whole, and text of several lines, such as a stack, as lines. --compact makes one line "Decision"
of the events that lead to a decision, with the id of the last one.

With --json each event is one line: {"id":1,"type":"WorkflowStarted","time":"…","attributes":{…}};
with -o yaml each is a document. With --follow new events are printed as they come, until the run
has closed. --payloads shows what is large in place of its references. So

  drover history order-17 --json --payloads > testdata/order-17.jsonl

writes what drovertest.Replay reads.

The first event of a replay tells which run it repeats and why, the last line of a run that was
replayed which run repeats it. The attempts of a workflow are in drover describe.`,
		Example: `  drover history order-17 --compact
  drover history order-17 --full --follow`,
		Args: cli.ArgNames("ID"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.JSON {
				return cli.RefuseFlags(cmd, []string{"compact"},
					"but documents are whole: leave it out, or --json and --output")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			line.width = a.Width()
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return showHistory(ctx, a, c.Run(args[0], runID), o, &line)
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false,
		"go on with new events until the run has closed")
	cmd.Flags().BoolVar(&o.Payloads, "payloads", false,
		"large payloads in place of their references")
	cmd.Flags().BoolVar(&line.compact, "compact", false, "one line for each decision")
	cmd.Flags().BoolVar(&line.full, "full", false,
		"values whole, and text of several lines as lines")
	return cmd
}

func showHistory(
	ctx context.Context, a *cli.App, run *drover.Run, o drover.HistoryOptions, line *Timeline,
) error {
	out := bufio.NewWriter(a.Stdout)
	o.OnSoft = func() { fmt.Fprintln(a.Stderr, SoftNote) }
	if !a.JSON {
		o.OnReplayed = func(run string) {
			fmt.Fprintf(out, "%s replayed as run %s\n",
				strings.Repeat(" ", Indent), cli.Word(run, 64))
		}
	}
	for e, err := range run.History(ctx, o) {
		if err != nil {
			out.Flush()
			return err
		}
		if a.JSON {
			err = a.WriteDocument(out, e)
		} else {
			_, err = out.WriteString(line.Print(e))
		}
		if err == nil && o.Follow {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
	if !a.JSON {
		if _, err := out.WriteString(line.end()); err != nil {
			return err
		}
	}
	return out.Flush()
}
