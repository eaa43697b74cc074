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

// What became of a workflow of a query.
const (
	outcomeReplayed = "replayed"
	outcomeWould    = "would replay"
	outcomeNothing  = "nothing to do"
	outcomeSkipped  = "skipped"
	outcomeRefused  = "refused"
)

// ReplayLine is one workflow of a query.
type ReplayLine struct {
	replayDocument
	Outcome string         `json:"outcome"`
	Because string         `json:"because,omitempty"`
	Error   *schemas.Error `json:"error,omitempty"`
}

// bulk replays what a query finds.
func (f *replayFlags) bulk(a *cli.App, cmd *cobra.Command) error {
	q, err := cli.ParseQuery(f.query)
	if err != nil {
		return cli.Usage(cmd, fmt.Errorf("--query: %w", err))
	}
	return a.Client(cmd, func(ctx context.Context, c *drover.Client) error {
		b := &bulkReplay{f: f, counts: map[string]int{}, seen: map[schemas.Execution]bool{}}
		if err := cli.Lines(a, cli.Table{Columns: replayColumns}, b.each(ctx, c, q), replayRow); err != nil {
			return err
		}
		if !a.JSON {
			fmt.Fprintf(a.Stderr, "%d %s, %d skipped, %d with nothing to do, %d refused\n",
				b.counts[outcomeReplayed]+b.counts[outcomeWould],
				map[bool]string{true: "would be replayed", false: "replayed"}[f.o.DryRun],
				b.counts[outcomeSkipped], b.counts[outcomeNothing], b.counts[outcomeRefused])
		}
		if b.more {
			fmt.Fprintf(a.Stderr, "there may be more than %d: %s\n", f.limit, b.further())
		}
		if n := b.counts[outcomeRefused]; n > 0 {
			return fmt.Errorf("%s refused, of %d", cli.Counted(n, "workflow was", "workflows were"),
				b.looked())
		}
		return nil
	})
}

var replayColumns = []cli.Column{
	{Head: "ID", Keep: 26},
	{Head: "RUN", Drop: 1},
	{Head: "OUTCOME"},
	{Head: "NEW RUN", Drop: 2},
	{Head: "BEGINS", Keep: 16},
	{Head: "MAY NOT SIMPLY RUN TWICE", Keep: 24, Drop: 3},
}

// bulkReplay is a query under way. What is skipped does not count against the limit: the runs that
// an earlier time has replayed match for as long as they are kept, and would keep it from those
// after them.
type bulkReplay struct {
	f      *replayFlags
	counts map[string]int
	// runs that were looked at, or begun: a new run that fails at once is found again
	seen map[schemas.Execution]bool
	more bool
}

// looked is how many workflows were looked at.
func (b *bulkReplay) looked() (n int) {
	for _, c := range b.counts {
		n += c
	}
	return n
}

// counted is how much of the limit is used up.
func (b *bulkReplay) counted() int { return b.looked() - b.counts[outcomeSkipped] }

// further says how to come to the rest. Whatever was refused, or has nothing to do, counts the next
// time, too.
func (b *bulkReplay) further() string {
	if b.counts[outcomeReplayed] == 0 {
		return "raise --limit"
	}
	return "raise --limit, or repeat the command"
}

// each replays one after the other, and goes on over what is refused. Whatever every other one
// would meet as well ends it.
func (b *bulkReplay) each(
	ctx context.Context, c *drover.Client, q drover.ListOptions,
) iter.Seq2[ReplayLine, error] {
	return func(yield func(ReplayLine, error) bool) {
		for e, err := range candidatesOf(ctx, c, q) {
			if err != nil {
				yield(ReplayLine{}, err)
				return
			}
			run := schemas.Execution{WorkflowID: e.WorkflowID, Run: e.Run}
			if b.seen[run] {
				continue
			}
			b.seen[run] = true
			if b.counted() == b.f.limit {
				if b.more = e.Parent == nil; b.more {
					return
				}
				continue
			}
			line, err := b.f.one(ctx, c, e)
			if err == nil {
				b.counts[line.Outcome]++
				b.seen[schemas.Execution{WorkflowID: line.WorkflowID, Run: line.Run}] = true
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// candidatesOf lists the runs that a query may mean.
func candidatesOf(
	ctx context.Context, c *drover.Client, q drover.ListOptions,
) iter.Seq2[schemas.ExecutionInfo, error] {
	named := q.Status != ""
	if !named {
		q.Status = schemas.StatusClosed
	}
	return func(yield func(schemas.ExecutionInfo, error) bool) {
		for e, err := range c.List(ctx, q) {
			if err == nil && !named &&
				(e.Status == schemas.StatusCompleted || e.Status == schemas.StatusContinuedAsNew) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (f *replayFlags) one(
	ctx context.Context, c *drover.Client, e schemas.ExecutionInfo,
) (ReplayLine, error) {
	line := ReplayLine{
		replayDocument: replayDocument{WorkflowID: e.WorkflowID, Replays: e.Run},
		Outcome:        outcomeSkipped,
	}
	if e.Parent != nil {
		line.Because = "a child: replay " + e.Parent.WorkflowID
		return line, nil
	}
	o := f.o
	o.LatestOnly = true
	out, err := c.Run(e.WorkflowID, e.Run).Replay(ctx, &o)
	refusal, ok := errors.AsType[*schemas.Error](err)
	switch {
	case ok && refusal.Code == schemas.CodeConflict && refusal.Field == "run":
		line.Because = refusal.Message
	case cli.IsAny(err, drover.ErrUnavailable, drover.ErrPermission, drover.ErrInvalid,
		context.Canceled, context.DeadlineExceeded):
		return line, err
	case err != nil:
		_, line.Error = cli.DescribeError(err)
		line.Outcome, line.Because = outcomeRefused, line.Error.Message
	case out.Run == nil:
		line.Outcome, line.Plan = outcomeWould, out.Plan
	case out.Run.RunID == e.Run:
		line.Outcome, line.Run, line.Plan = outcomeNothing, out.Run.RunID, out.Plan
	default:
		// if the first answer was lost, a later try of the request is told that nothing more was
		// begun
		line.Outcome, line.Run, line.Started, line.Plan = outcomeReplayed, out.Run.RunID, true, out.Plan
	}
	if line.Outcome == outcomeWould && line.Plan != nil && line.Plan.From == schemas.ReplayFromEnd {
		line.Outcome = outcomeNothing
	}
	return line, nil
}

func replayRow(l ReplayLine) []string {
	run, begins := "-", "-"
	if l.Started {
		run = l.Run
	}
	switch {
	case l.Because != "":
		begins = cli.Sentence(l.Because)
	case l.Plan != nil:
		begins = planWords(l.Plan)
	}
	return []string{
		cli.Word(l.WorkflowID, cli.Whole), l.Replays, l.Outcome, run, begins, riskyWords(l.Plan),
	}
}
