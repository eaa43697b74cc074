package workflows

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func HistoryCommand(a *cli.App) *cobra.Command {
	var runID string
	var part historyPart
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
has closed. --last 20 begins with the twentieth event from the end, --after and --before take a
part, --types takes events of some types. Of these --last counts, too: so

  drover history order-17 --types ActivityFailed,ActivityTimedOut --last 5

shows the last five failures. --payloads shows what is large in place of its references. So

  drover history order-17 --json --payloads > testdata/order-17.jsonl

writes what drovertest.Replay reads.

The first event of a replay tells which run it repeats and why, the last line of a run that was
replayed which run repeats it. The attempts of a workflow are in drover describe.`,
		Example: `  drover history order-17 --compact
  drover history order-17 --full --follow`,
		Args: cli.ArgNames("ID"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if part.Follow {
				if err := cli.RefuseFlags(cmd, []string{"before"},
					"but new events come after all: leave it out, or --follow"); err != nil {
					return err
				}
			}
			if a.JSON {
				return cli.RefuseFlags(cmd, []string{"compact"},
					"but documents are whole: leave it out, or --json and --output")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			line.width = a.Width()
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				return showHistory(ctx, a, c.Run(args[0], runID), part, &line)
			})
		},
	}
	cli.RunFlag(cmd, &runID)
	cmd.Flags().BoolVarP(&part.Follow, "follow", "f", false,
		"go on with new events until the run has closed")
	cmd.Flags().BoolVar(&part.Payloads, "payloads", false,
		"large payloads in place of their references")
	cmd.Flags().Int64Var(&part.After, "after", 0, "only events after this one")
	cmd.Flags().Int64Var(&part.Before, "before", 0, "only events before this one")
	cmd.Flags().StringSliceVar(&part.types, "types", nil, "only events of these types")
	cmd.Flags().UintVar(&part.last, "last", 0, "only so many events, the last ones")
	cmd.Flags().BoolVar(&line.compact, "compact", false, "one line for each decision")
	cmd.Flags().BoolVar(&line.full, "full", false,
		"values whole, and text of several lines as lines")
	return cmd
}

// historyPart is the part of a history that is shown.
type historyPart struct {
	drover.HistoryOptions
	types []string
	last  uint
}

func showHistory(
	ctx context.Context, a *cli.App, run *drover.Run, part historyPart, line *Timeline,
) error {
	for _, t := range part.types {
		part.Types = append(part.Types, schemas.EventType(t))
	}
	if part.last > 0 || part.After > 0 || len(part.Types) > 0 {
		d, err := run.Describe(ctx) // so that all is of one run, and times count from its start
		if err != nil {
			return err
		}
		pinned := *run
		pinned.RunID = d.Execution.Run
		run = &pinned
		line.begin(d.Execution.StartedAt)
		line.part = true
	}
	out := bufio.NewWriter(a.Stdout)
	replayed := ""
	part.OnSoft = func() { fmt.Fprintln(a.Stderr, SoftNote) }
	part.OnReplayed = func(run string) { replayed = run }
	err := part.each(ctx, run, func(e schemas.Event) (err error) {
		if a.JSON {
			err = a.WriteDocument(out, e)
		} else {
			_, err = out.WriteString(line.Print(e))
		}
		if err == nil && part.Follow {
			err = out.Flush()
		}
		return err
	})
	if err != nil {
		out.Flush()
		return err
	}
	if !a.JSON {
		if replayed != "" {
			fmt.Fprintf(out, "%s replayed as run %s\n",
				strings.Repeat(" ", Indent), cli.Word(replayed, 64))
		}
		out.WriteString(line.end())
	}
	return out.Flush()
}

// each shows the events of the part, in their order.
func (p *historyPart) each(
	ctx context.Context, run *drover.Run, show func(schemas.Event) error,
) error {
	o := p.HistoryOptions
	if p.last > 0 {
		o.NewestFirst, o.Limit, o.Follow = true, int(p.last), false
		var events []schemas.Event
		for e, err := range run.History(ctx, o) {
			if err != nil {
				return err
			}
			events = append(events, e)
		}
		for _, e := range slices.Backward(events) {
			if err := show(e); err != nil {
				return err
			}
		}
		if !p.Follow {
			return nil
		}
		if o = p.HistoryOptions; len(events) > 0 {
			o.After = events[0].ID
		}
	}
	for e, err := range run.History(ctx, o) {
		if err != nil {
			return err
		}
		if err := show(e); err != nil {
			return err
		}
	}
	return nil
}
