package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// mostRepeats bounds how many replays of a workflow id are looked at.
const mostRepeats = 10 * schemas.MaxReplayAttempts

// attempts are the runs of a workflow id that repeat the same run as the one given, or are it: the initial one first, the others in the
// order in which they began, which is that of their last records: one run of an id is open at a time. None if the run was never replayed.
func (b *Broker) attempts(ctx context.Context, partition int, wid, run string) ([]schemas.ReplayAttempt, error) {
	latest, err := b.reads.LastBySubject(ctx, b.ns.StreamHistory(partition), b.ns.HistoryOfWorkflow(partition, wid))
	if err == nil && isRecord(latest) {
		if i, err := infoFrom(*latest); err == nil && i.Run == run && i.Replays == nil { // nothing repeats the latest run, and it repeats none
			return nil, nil
		}
	}
	repeats := map[string]*schemas.ExecutionInfo{}
	var order []*schemas.ExecutionInfo
	q := &schemas.ListRequest{WorkflowID: wid}
	err = b.walk(ctx, q, partition, 1, func(_ int, _ uint64, i *schemas.ExecutionInfo) error {
		switch {
		case i == nil || i.Replays == nil:
		case len(order) == mostRepeats:
			return errPageFull
		default:
			repeats[i.Run], order = i, append(order, i)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, fmt.Errorf("look for replays of %q: %w", wid, err)
	}
	root := run
	for range len(order) {
		i := repeats[root]
		if i == nil {
			break
		}
		root = i.Replays.Run
	}
	family, all := map[string]bool{root: true}, []schemas.ReplayAttempt(nil)
	for _, i := range order {
		if family[i.Replays.Run] {
			family[i.Run] = true
			all = append(all, attemptOf(i))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	m, err := b.reads.LastBySubject(ctx, b.ns.StreamHistory(partition), b.ns.History(partition, wid, root))
	switch {
	case errors.Is(err, natsconn.ErrNotFound): // gone by its retention
	case err != nil:
		return nil, fmt.Errorf("look for run %s: %w", root, err)
	default:
		if i, err := infoFrom(*m); err == nil {
			all = append([]schemas.ReplayAttempt{attemptOf(&i)}, all...)
		}
	}
	return all[:min(len(all), schemas.MaxReplayAttempts)], nil
}

func attemptOf(i *schemas.ExecutionInfo) schemas.ReplayAttempt {
	a := schemas.ReplayAttempt{Run: i.Run, Replays: i.Replays, StartedAt: i.StartedAt, ClosedAt: i.ClosedAt, Status: i.Status}
	if a.ClosedAt != 0 { // the one is the owner's clock, the other the server's
		a.ClosedAt = max(a.ClosedAt, a.StartedAt)
	}
	return a
}

// replayOf is the latest of the attempts that repeats a run; nil if there is none.
func replayOf(attempts []schemas.ReplayAttempt, run string) *schemas.ReplayAttempt {
	for i := len(attempts) - 1; i >= 0; i-- {
		if a := &attempts[i]; a.Replays != nil && a.Replays.Run == run {
			return a
		}
	}
	return nil
}

// replayedBecause adds to why a run has ended what came of it.
func replayedBecause(attempts []schemas.ReplayAttempt, run string) string {
	a := replayOf(attempts, run)
	if a == nil {
		return ""
	}
	text := fmt.Sprintf("; it was replayed from %s as run %s (%s)", a.Replays.From, a.Run, a.Status)
	if a.Replays.Reason != "" {
		text += ": " + a.Replays.Reason
	}
	return text
}

// withAttempts adds to the description of a run how it was replayed.
func (p *partition) withAttempts(d *schemas.DescribeResponse, reply func(any)) {
	readAsync(p.b, p.loop, func(ctx context.Context) ([]schemas.ReplayAttempt, error) {
		return p.b.attempts(ctx, p.n, d.Execution.WorkflowID, d.Execution.Run)
	}, func(all []schemas.ReplayAttempt, err error) {
		if err != nil {
			reply(&schemas.AckResponse{V: schemas.Version, Error: unavailable(err)})
			return
		}
		if d.Attempts = all; d.Soft && len(all) > 0 { // the history of the run itself is not there to be listed
			d.Attempts = append([]schemas.ReplayAttempt{attemptOf(&d.Execution)}, all[:min(len(all), schemas.MaxReplayAttempts-1)]...)
		}
		reply(d)
	})
}

// tellReplay adds to the end of a history who repeats the run. Without it the page is good all the same.
func (p *partition) tellReplay(ctx context.Context, wid string, a *schemas.HistoryResponse) {
	all, err := p.b.attempts(ctx, p.n, wid, a.Run)
	if err != nil {
		p.log.WithError(err).WithField("workflow", wid).Debug("whether a run was replayed is not known")
		return
	}
	if by := replayOf(all, a.Run); by != nil {
		a.ReplayedBy = by.Run
	}
}
