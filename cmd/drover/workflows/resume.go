package workflows

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

// What becomes of a workflow of a query of resume, beside the words of replay.
const (
	outcomeResumed     = "resumed"
	outcomeWouldResume = "would resume"
)

// resumeFlags are those of resume beside the flags of every operator's command.
type resumeFlags struct {
	query  string
	limit  int
	dryRun bool
}

func ResumeCommand(a *cli.App) *cobra.Command {
	f := &resumeFlags{}
	cmd := operatorCommand(a, "resume", "resumed", "Resume paused workflows", (*drover.Run).Resume)
	cmd.Use = "resume ID | --query FILTERS"
	cmd.Long = `Resume a workflow that was paused by hand, or parked because its decider failed
again and again.

--query resumes all parked workflows that match, up to --limit. Filters are those of "drover
list": type=order started-after=2h. With status=paused in the query, it also resumes those that
were paused by hand. Children are resumed like others. --dry-run says what would be resumed, and
why it stands.`
	cmd.Example = `  drover resume order-17 --reason "the decider is mended"
  drover resume --query "type=order started-after=2h" --dry-run`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("query") {
			return cli.ArgNames()(cmd, args)
		}
		return cli.ArgNames("ID")(cmd, args)
	}
	one := cmd.RunE
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return f.check(cmd) }
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return f.bulk(a, cmd)
		}
		return one(cmd, args)
	}
	fs := cmd.Flags()
	fs.StringVar(&f.query, "query", "", "resume all that match: NAME=VALUE as of drover list")
	fs.IntVar(&f.limit, "limit", 100, "with --query, at most so many")
	fs.BoolVar(&f.dryRun, "dry-run", false,
		"with --query, say what would be resumed, and resume nothing")
	return cmd
}

func (f *resumeFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch bulk := changed("query"); {
	case bulk && changed("run"):
		return cli.Usage(cmd,
			errors.New("--run is for a single workflow: leave it out with --query"))
	case !bulk && changed("limit"):
		return cli.Usage(cmd, errors.New("--limit needs --query"))
	case !bulk && changed("dry-run"):
		return cli.Usage(cmd, errors.New("--dry-run needs --query"))
	case bulk && f.limit < 1:
		return cli.Usage(cmd, fmt.Errorf("--limit is %d: use at least 1", f.limit))
	}
	return nil
}

// ResumeLine is one workflow of a query.
type ResumeLine struct {
	WorkflowID string         `json:"workflowId"`
	Run        string         `json:"run"`
	Type       string         `json:"type"`
	Outcome    string         `json:"outcome"`
	Paused     string         `json:"paused,omitempty"` // why it stands, or stood
	Because    string         `json:"because,omitempty"`
	Error      *schemas.Error `json:"error,omitempty"`
}

// bulk resumes what a query finds.
func (f *resumeFlags) bulk(a *cli.App, cmd *cobra.Command) error {
	q, err := cli.ParseQuery(f.query)
	if err != nil {
		return cli.Usage(cmd, fmt.Errorf("--query: %w", err))
	}
	if q.Status != "" && q.Status != schemas.StatusPaused {
		return cli.Usage(cmd, fmt.Errorf(
			"--query: status is %s, but only paused workflows can be resumed: leave it out, or say status=paused",
			q.Status))
	}
	reason := cmd.Flags().Lookup("reason").Value.String()
	return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
		b := &bulkResume{
			f: f, reason: reason, byHand: q.Status != "", counts: map[string]int{},
			seen: map[schemas.Execution]bool{},
		}
		q.Status = schemas.StatusPaused
		if err := cli.Lines(a, cli.Table{Columns: resumeColumns}, b.each(ctx, c, q), resumeRow); err != nil {
			return err
		}
		if !a.JSON {
			fmt.Fprintf(a.Stderr, "%d %s, %d skipped, %d refused\n",
				b.counts[outcomeResumed]+b.counts[outcomeWouldResume],
				map[bool]string{true: "would be resumed", false: "resumed"}[f.dryRun],
				b.counts[outcomeSkipped], b.counts[outcomeRefused])
		}
		if b.more {
			fmt.Fprintf(a.Stderr,
				"there may be more than %d: raise --limit, or repeat the command\n", f.limit)
		}
		if n := b.counts[outcomeRefused]; n > 0 {
			return fmt.Errorf("%s refused", cli.Counted(n, "workflow was", "workflows were"))
		}
		return nil
	})
}

var resumeColumns = []cli.Column{
	{Head: "ID", Keep: 26},
	{Head: "RUN", Drop: 1},
	{Head: "TYPE", Keep: 8},
	{Head: "OUTCOME"},
	{Head: "WHY", Keep: 20},
}

// bulkResume is a query under way. What is skipped does not count against the limit.
type bulkResume struct {
	f      *resumeFlags
	reason string
	byHand bool // those that somebody has paused are meant, too
	counts map[string]int
	seen   map[schemas.Execution]bool
	more   bool
}

func (b *bulkResume) each(
	ctx context.Context, c *drover.Client, q drover.ListOptions,
) iter.Seq2[ResumeLine, error] {
	return func(yield func(ResumeLine, error) bool) {
		for e, err := range c.List(ctx, q) {
			if err != nil {
				yield(ResumeLine{}, err)
				return
			}
			run := schemas.Execution{WorkflowID: e.WorkflowID, Run: e.Run}
			if b.seen[run] {
				continue
			}
			b.seen[run] = true
			if b.counts[outcomeResumed]+b.counts[outcomeWouldResume]+b.counts[outcomeRefused] == b.f.limit {
				b.more = true
				return
			}
			line, err := b.one(ctx, c, e)
			if err == nil {
				b.counts[line.Outcome]++
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func (b *bulkResume) one(
	ctx context.Context, c *drover.Client, e schemas.ExecutionInfo,
) (ResumeLine, error) {
	line := ResumeLine{WorkflowID: e.WorkflowID, Run: e.Run, Type: e.Type, Outcome: outcomeSkipped}
	run := c.Run(e.WorkflowID, e.Run)
	now, err := run.Describe(ctx)
	switch {
	case errors.Is(err, drover.ErrNotFound):
		line.Because = "it is gone"
		return line, nil
	case err != nil:
		return line, err
	}
	line.Paused = now.PausedDetails
	switch {
	case now.Execution.Status != schemas.StatusPaused:
		line.Because = "it is " + string(now.Execution.Status)
		return line, nil
	case now.PausedCause != string(schemas.CauseDeciderAttempts) && !b.byHand:
		line.Because = "somebody has paused it: add status=paused to the query"
		return line, nil
	case b.f.dryRun:
		line.Outcome = outcomeWouldResume
		return line, nil
	}
	switch err = run.Resume(ctx, b.reason); {
	case err == nil:
		line.Outcome = outcomeResumed
	case cli.IsAny(err, drover.ErrClosed, drover.ErrNotFound):
		line.Because = "it has ended"
	case cli.IsAny(err, drover.ErrUnavailable, drover.ErrPermission, drover.ErrInvalid,
		context.Canceled, context.DeadlineExceeded):
		return line, err
	default:
		_, line.Error = cli.DescribeError(err)
		line.Outcome, line.Because = outcomeRefused, line.Error.Message
	}
	return line, nil
}

func resumeRow(l ResumeLine) []string {
	why := l.Paused
	if l.Because != "" {
		why = l.Because
	}
	if why == "" {
		why = "-"
	}
	return []string{
		cli.Word(l.WorkflowID, cli.Whole), l.Run, cli.Word(l.Type, cli.Whole), l.Outcome,
		cli.Sentence(why),
	}
}
