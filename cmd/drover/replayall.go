package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/droverhq/drover"
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

// replayLine is one workflow of a query.
type replayLine struct {
	replayDocument
	Outcome string         `json:"outcome"`
	Because string         `json:"because,omitempty"`
	Error   *schemas.Error `json:"error,omitempty"`
}

// bulk replays what a query finds. It is listed before anything is replayed: a new run that fails at once would be found again.
func (f *replayFlags) bulk(a *app, cmd *cobra.Command) error {
	q, err := parseQuery(f.query)
	if err != nil {
		return usage(cmd, fmt.Errorf("--query: %w", err))
	}
	return a.client(cmd, func(ctx context.Context, c *drover.Client) error {
		found, more, err := candidatesOf(ctx, c, q, f.limit)
		if err != nil {
			return err
		}
		counts := map[string]int{}
		heads := []string{"ID", "RUN", "OUTCOME", "NEW RUN", "BEGINS", "MAY NOT SIMPLY RUN TWICE"}
		if err := lines(a, heads, f.each(ctx, c, found, counts), replayRow); err != nil {
			return err
		}
		if !a.json {
			fmt.Fprintf(a.stderr, "%d %s, %d skipped, %d with nothing to do, %d refused\n", counts[outcomeReplayed]+counts[outcomeWould],
				map[bool]string{true: "would be replayed", false: "replayed"}[f.o.DryRun], counts[outcomeSkipped], counts[outcomeNothing], counts[outcomeRefused])
			if more {
				fmt.Fprintf(a.stderr, "there are more than %d: raise --limit, or repeat the command\n", f.limit)
			}
		}
		if n := counts[outcomeRefused]; n > 0 {
			return fmt.Errorf("%d of %d workflows were refused", n, len(found))
		}
		return nil
	})
}

// candidatesOf lists the runs that a query may mean, at most limit of them, and tells whether there are more.
func candidatesOf(ctx context.Context, c *drover.Client, q drover.ListOptions, limit int) (found []schemas.ExecutionInfo, more bool, err error) {
	named := q.Status != ""
	if !named {
		q.Status = schemas.StatusClosed
	}
	for e, err := range c.List(ctx, q) {
		switch {
		case err != nil:
			return nil, false, err
		case !named && (e.Status == schemas.StatusCompleted || e.Status == schemas.StatusContinuedAsNew):
		case len(found) == limit:
			return found, true, nil
		default:
			found = append(found, e)
		}
	}
	return found, false, nil
}

// each replays one after the other, and goes on over what is refused. Whatever every other one would meet as well ends it.
func (f *replayFlags) each(ctx context.Context, c *drover.Client, found []schemas.ExecutionInfo, counts map[string]int) iter.Seq2[replayLine, error] {
	return func(yield func(replayLine, error) bool) {
		for _, e := range found {
			line, err := f.one(ctx, c, e)
			if err == nil {
				counts[line.Outcome]++
			}
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

func (f *replayFlags) one(ctx context.Context, c *drover.Client, e schemas.ExecutionInfo) (replayLine, error) {
	line := replayLine{replayDocument: replayDocument{WorkflowID: e.WorkflowID, Replays: e.Run}, Outcome: outcomeSkipped}
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
	case isAny(err, drover.ErrUnavailable, drover.ErrPermission, drover.ErrInvalid, context.Canceled, context.DeadlineExceeded):
		return line, err
	case err != nil:
		_, line.Error = describeError(err)
		line.Outcome, line.Because = outcomeRefused, line.Error.Message
	case out.Run == nil:
		line.Outcome, line.Plan = outcomeWould, out.Plan
	case out.Run.RunID == e.Run:
		line.Outcome, line.Run, line.Plan = outcomeNothing, out.Run.RunID, out.Plan
	default: // if the first answer was lost, a later try of the request is told that nothing more was begun
		line.Outcome, line.Run, line.Started, line.Plan = outcomeReplayed, out.Run.RunID, true, out.Plan
	}
	if line.Outcome == outcomeWould && line.Plan != nil && line.Plan.From == schemas.ReplayFromEnd {
		line.Outcome = outcomeNothing
	}
	return line, nil
}

func replayRow(l replayLine) []string {
	run, begins := "-", "-"
	if l.Started {
		run = l.Run
	}
	switch {
	case l.Because != "":
		begins = sentence(l.Because)
	case l.Plan != nil:
		begins = planWords(l.Plan)
	}
	return []string{word(l.WorkflowID, 60), l.Replays, l.Outcome, run, begins, riskyWords(l.Plan)}
}
