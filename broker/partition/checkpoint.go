package partition

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/schemas"
)

func (p *Partition) positions() schemas.Checkpoint {
	return schemas.Checkpoint{
		Inbox:   p.intake.Logs[inboxLog].Done.Position(),
		Signals: p.intake.Logs[signalLog].Done.Position(),
		Effects: p.intake.Effects.Position().Sequence, Fence: p.fence, Server: p.written,
		Alarms: p.deadlines.Armed, History: p.top.sequence, Witness: p.top.digest,
	}
}

func (p *Partition) writeCheckpoint(ctx context.Context, c schemas.Checkpoint) (uint64, error) {
	body, err := schemas.Marshal(&c)
	if err != nil {
		return 0, err
	}
	bucket, key := p.b.NS.BucketCheckpoints(), p.checkpointKey()
	if p.checkpointRev == 0 {
		return p.b.Conn.KVCreate(ctx, bucket, key, body, 0)
	}
	return p.b.Conn.KVUpdate(ctx, bucket, key, body, p.checkpointRev, 0)
}

// handOver ends a term: what is committed is written down, so that the next owner has little to
// repeat, and nothing if the end was planned.
func (p *Partition) handOver(ctx context.Context, next schemas.Checkpoint) {
	if !p.lease.Valid() || p.intake.Logs[inboxLog] == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if next != p.checkpointed && !p.checkpointing {
		if _, err := p.writeCheckpoint(ctx, next); err != nil && !errors.Is(err, context.Canceled) {
			p.log.WithError(err).
				Warn("the last checkpoint cannot be written; the next owner repeats a little more")
		}
	}
}
