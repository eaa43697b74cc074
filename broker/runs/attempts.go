package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// mostRepeats bounds how many replays of a workflow id are looked at.
const mostRepeats = 10 * schemas.MaxReplayAttempts

// Attempts are the runs of a workflow id that repeat the same run as the one given, or are it: the
// initial one first, the others in the order in which they began, which is that of their last
// records: one run of an id is open at a time. None if the run was never replayed.
func (r *Reader) Attempts(
	ctx context.Context, partition int, wid, run string,
) ([]schemas.ReplayAttempt, error) {
	latest, err := r.Conn.LastBySubject(
		ctx,
		r.Namespace.StreamHistory(partition),
		r.Namespace.HistoryOfWorkflow(partition, wid),
	)
	if err == nil && IsRecord(latest) {
		if i, err := InfoFrom(*latest); err == nil && i.Run == run && i.Replays == nil {
			// nothing repeats the latest run, and it repeats none
			return nil, nil
		}
	}
	repeats := map[string]*schemas.ExecutionInfo{}
	var order []*schemas.ExecutionInfo
	q := &schemas.ListRequest{WorkflowID: wid}
	err = r.walk(ctx, q, partition, 1, func(_ int, _ uint64, i *schemas.ExecutionInfo) error {
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
			all = append(all, AttemptOf(i))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	m, err := r.Conn.LastBySubject(
		ctx,
		r.Namespace.StreamHistory(partition),
		r.Namespace.History(partition, wid, root),
	)
	switch {
	case errors.Is(err, natsconn.ErrNotFound): // gone by its retention
	case err != nil:
		return nil, fmt.Errorf("look for run %s: %w", root, err)
	default:
		if i, err := InfoFrom(*m); err == nil {
			all = append([]schemas.ReplayAttempt{AttemptOf(&i)}, all...)
		}
	}
	return all[:min(len(all), schemas.MaxReplayAttempts)], nil
}

// AttemptOf is what is told of a run that was replayed, or replays one.
func AttemptOf(i *schemas.ExecutionInfo) schemas.ReplayAttempt {
	a := schemas.ReplayAttempt{
		Run:       i.Run,
		Replays:   i.Replays,
		StartedAt: i.StartedAt,
		ClosedAt:  i.ClosedAt,
		Status:    i.Status,
	}
	if a.ClosedAt != 0 { // the one is the owner's clock, the other the server's
		a.ClosedAt = max(a.ClosedAt, a.StartedAt)
	}
	return a
}

// ReplayOf is the latest of the attempts that repeats a run; nil if there is none.
func ReplayOf(attempts []schemas.ReplayAttempt, run string) *schemas.ReplayAttempt {
	for i := len(attempts) - 1; i >= 0; i-- {
		if a := &attempts[i]; a.Replays != nil && a.Replays.Run == run {
			return a
		}
	}
	return nil
}
