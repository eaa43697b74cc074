package workflows

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// replayFlags are those of replay.
type replayFlags struct {
	run, query string
	limit      int
	o          drover.ReplayOptions
}

func ReplayCommand(a *cli.App) *cobra.Command {
	f := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay ID | --query FILTERS",
		Short: "Run an ended workflow again, from a replay point or the start",
		Long: `Begin a new run of a workflow id that repeats one which has ended. The result of
the workflow is that of the new run then; "drover describe ID" lists the attempts.

--from says where a flow goes on: end where it stood (or at its last replay point, if that step
may not run twice), last at its last replay point, start at its beginning if that is a replay
point, or at a step by its id or index, or at the replay point before it if it is none itself. A
workflow of another decider begins from start, with the same input. --force ignores idempotence
and replay points, and needs a right of its own.

--query replays all workflows that match, up to --limit. Filters are those of "drover list":
status=failed type=order tag=x. Without a status all that have ended and did not complete are
meant. Only the latest run of each id is replayed, and no child; what is skipped for that does not
count against --limit. --dry-run says what would run again, and marks the steps that may not
simply run twice.`,
		Example: `  drover replay order-17 --from pay --reason "the bank is back"
  drover replay --query "status=failed type=order closed-after=24h" --dry-run`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("query") {
				return cli.ArgNames()(cmd, args)
			}
			return cli.ArgNames("ID")(cmd, args)
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error { return f.check(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return f.bulk(a, cmd)
			}
			return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
				out, err := c.Run(args[0], f.run).Replay(ctx, &f.o)
				if err != nil {
					return err
				}
				return replayed(a, args[0], out)
			})
		},
	}
	cli.RunFlag(cmd, &f.run)
	fs := cmd.Flags()
	fs.StringVar(&f.o.From, "from", "",
		"where to begin: start, last, end, or a step by its id or index (default end)")
	fs.BoolVar(&f.o.Force, "force", false,
		"mind neither idempotence nor replay points nor replayable: disabled")
	fs.StringVar(&f.o.Reason, "reason", "", "why, for the history")
	fs.BoolVar(&f.o.DryRun, "dry-run", false, "say what would run again, and begin nothing")
	fs.StringVar(&f.o.RequestID, "request-id", "",
		"a name for this request: repeating it begins nothing new")
	fs.StringVar(&f.query, "query", "", "replay all that match: NAME=VALUE as of drover list")
	fs.IntVar(&f.limit, "limit", 100, "with --query, at most so many")
	return cmd
}

func (f *replayFlags) check(cmd *cobra.Command) error {
	bulk := cmd.Flags().Changed("query")
	switch {
	case bulk && (f.run != "" || f.o.RequestID != ""):
		return cli.Usage(cmd, errors.New(
			"--run and --request-id are for a single workflow: leave them out with --query"))
	case !bulk && cmd.Flags().Changed("limit"):
		return cli.Usage(cmd, errors.New("--limit needs --query"))
	case bulk && f.limit < 1:
		return cli.Usage(cmd, fmt.Errorf("--limit is %d: use at least 1", f.limit))
	}
	return nil
}

// replayDocument is what a replay has come to.
type replayDocument struct {
	WorkflowID string              `json:"workflowId"`
	Run        string              `json:"run,omitempty"`
	Replays    string              `json:"replays,omitempty"`
	Started    bool                `json:"started"`
	Plan       *schemas.ReplayPlan `json:"plan,omitempty"`
}

func replayed(a *cli.App, id string, out *drover.Replayed) error {
	if a.JSON {
		d := replayDocument{WorkflowID: id, Replays: out.Replays, Plan: out.Plan}
		if out.Run != nil {
			d.Run, d.Started = out.Run.RunID, out.Run.Started()
		}
		return a.Document(d)
	}
	var b bytes.Buffer
	id = cli.Word(id, 256)
	switch {
	case out.Run == nil:
		fmt.Fprintf(&b, "run %s of %s would begin %s\n", out.Replays, id, planWords(out.Plan))
	case out.Run.Started():
		fmt.Fprintf(&b, "replayed run %s of %s as run %s, %s\n",
			out.Replays, id, out.Run.RunID, planWords(out.Plan))
	case out.Run.RunID == out.Replays:
		fmt.Fprintf(&b, "nothing is left to run of %s run %s: it has completed\n",
			id, out.Run.RunID)
	default:
		fmt.Fprintf(&b, "run %s of %s was begun by this request before\n", out.Run.RunID, id)
	}
	if out.Plan != nil && len(out.Plan.Again) > 0 {
		fmt.Fprintln(&b, "what has run and runs again:")
		for _, s := range out.Plan.Again {
			fmt.Fprintf(&b, "  %s%s\n", s,
				map[bool]string{true: ", which may not simply run twice"}[s.NotIdempotent])
		}
	}
	_, err := a.Stdout.Write(b.Bytes())
	return err
}

// planWords says where a replay begins.
func planWords(p *schemas.ReplayPlan) string {
	switch {
	case p == nil:
		return "again"
	case p.From == schemas.ReplayFromStart:
		return "from the start"
	case p.From == schemas.ReplayFromEnd:
		return "at the end, with nothing left to run"
	case p.Resumes:
		return "within step " + p.From
	}
	return "at step " + p.From
}

// riskyWords names the steps that may not simply run twice.
func riskyWords(p *schemas.ReplayPlan) string {
	var names []string
	if p != nil {
		for _, s := range p.Risky() {
			names = append(names, s.String())
		}
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
