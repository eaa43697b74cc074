package retention

import (
	"context"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/ops/spans"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const (
	// maxClosed bounds the closed runs that wait to be heard of, manyClosed is when that is not
	// left to the next pass.
	maxClosed  = 32 << 10
	manyClosed = 1 << 10
	// fewRead is how many records are read at once that were not told of.
	fewRead = 1 << 10
)

// Changed takes what the owner of a partition in this process says of its records: those numbered
// from, to to are its own, stand in the history, and belong to these runs. The janitor keeps those
// that have closed, and does not read the records. It does not block, and is safe for concurrent
// use.
func (j *Janitor) Changed(partition int, from, to uint64, changed []broker.Change) {
	var closed []broker.Change
	for i := range changed {
		if changed[i].Line.Status.Closed() {
			closed = append(closed, changed[i])
		}
	}
	waiting := j.follower.Queue.Add(partition, spans.Span{From: from, To: to, Changed: closed})
	if waiting >= manyClosed {
		select {
		case j.many <- struct{}{}:
		default:
		}
	}
}

// hear takes a run that has closed, as its owner has told. The caller holds passing.
func (j *Janitor) hear(ctx context.Context, p int, c *broker.Change) error {
	e := j.entryOf(p, c.Sequence, c.Line.ClosedAt.Time(), c.Line.Run)
	return j.closed(ctx, e, &c.Line)
}

// hearOn goes by what was told whenever that is much, until ctx ends.
func (j *Janitor) hearOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.many:
		}
		if !j.passing.TryLock() {
			continue // the pass does
		}
		for p := range j.o.Partitions {
			if err := j.follower.HearOn(ctx, p, fewRead); err != nil && ctx.Err() == nil {
				j.o.Logger.WithField("err", err).
					Debug("closed runs could not be looked after; the next pass reads of them")
			}
		}
		j.passing.Unlock()
	}
}

// tell says that a run was purged. Who does not hear it finds out later.
func (j *Janitor) tell(c *candidate) {
	body, err := schemas.Marshal(&ops.PurgedRun{
		V: schemas.Version, WorkflowID: c.line.WorkflowID, Run: c.line.Run, Sequence: c.seq,
	})
	if err == nil {
		err = j.o.Conn.Publish(j.o.Namespace.Purged(int(c.partition)), nil, body)
	}
	if err != nil {
		j.o.Logger.WithField("err", err).Debug("that a run was purged cannot be told")
	}
}
