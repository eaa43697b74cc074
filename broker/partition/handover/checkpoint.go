package handover

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

func (ho *Handover) Positions() schemas.Checkpoint {
	return schemas.Checkpoint{
		Inbox:   ho.intake.Logs[intake.Inbox].Done.Position(),
		Signals: ho.intake.Logs[intake.Signals].Done.Position(),
		Effects: ho.intake.Effects.Position().Sequence, Fence: ho.Fence, Server: ho.written,
		Alarms: ho.deadlines.Armed, History: ho.Top.Sequence, Witness: ho.Top.digest,
	}
}

func (ho *Handover) Write(ctx context.Context, c schemas.Checkpoint) (uint64, error) {
	body, err := schemas.Marshal(&c)
	if err != nil {
		return 0, err
	}
	bucket, key := ho.Env.NS.BucketCheckpoints(), ho.checkpointKey()
	if ho.CheckpointRev == 0 {
		return ho.Env.Conn.KVCreate(ctx, bucket, key, body, 0)
	}
	return ho.Env.Conn.KVUpdate(ctx, bucket, key, body, ho.CheckpointRev, 0)
}

// WriteLast ends a term: what is committed is written down, so that the next owner has little to
// repeat, and nothing if the end was planned.
func (ho *Handover) WriteLast(ctx context.Context, next schemas.Checkpoint) {
	if !ho.lease.Valid() || ho.intake.Logs[intake.Inbox] == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if next != ho.Checkpointed && !ho.Checkpointing {
		if _, err := ho.Write(ctx, next); err != nil && !errors.Is(err, context.Canceled) {
			ho.Log.WithError(err).
				Warn("the last checkpoint cannot be written; the next owner repeats a little more")
		}
	}
}
