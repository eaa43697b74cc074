package handover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// writeFence writes the fence record: from its sequence on, every write that an earlier owner
// predicted is refused. It is written only above a claim that is older than ours, and only if
// nobody wrote another since it was read (P-2).
func (ho *Handover) writeFence(ctx context.Context) error {
	for {
		seq, before, err := fence(ctx, ho.Env.Conn, ho.Env.NS, ho.Partition, ho.lease.Number(),
			ho.Env.Options.Node)
		if errors.Is(err, natsconn.ErrInFlight) {
			if err := sleep.For(ctx, 5*time.Millisecond); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		ho.Fence, ho.Before = seq, before
		return nil
	}
}

// Fence writes a fence record for the holder of the given claim number and returns its sequence. It
// fails with [env.ErrNewerFence] if a later claim has written one, and with natsconn.ErrWrongSequence
// or natsconn.ErrInFlight if somebody else is writing one now.
func Fence(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, partition int, claim uint64,
	owner string,
) (uint64, error) {
	seq, _, err := fence(ctx, conn, ns, partition, claim, owner)
	return seq, err
}

// fence also returns the sequence of the fence before, 0 for none.
func fence(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, partition int, claim uint64,
	owner string,
) (seq, before uint64, err error) {
	name := ns.Fence(partition)
	switch last, err := conn.LastBySubject(ctx, ns.StreamHistory(partition), name); {
	case errors.Is(err, natsconn.ErrNotFound):
	case err != nil:
		return 0, 0, fmt.Errorf("read the fence: %w", err)
	default:
		before = last.Seq
		var f schemas.Fence
		if err := schemas.Unmarshal(last.Data, &f); err != nil {
			return 0, 0, fmt.Errorf("read the fence: %w", err)
		}
		if f.Claim > claim || f.Claim == claim && f.Owner != owner {
			return 0, 0, fmt.Errorf("%w: claim %d of %s, ours is %d",
				env.ErrNewerFence, f.Claim, f.Owner, claim)
		}
	}
	f := &schemas.Fence{Claim: claim, Owner: owner, Time: schemas.At(time.Now())}
	body, err := schemas.Marshal(f)
	if err != nil {
		return 0, 0, err
	}
	h := natsconn.Header{}
	natsconn.ExpectLastSubjectSeq(h, before)
	if seq, err = conn.PublishSync(ctx, name, h, body); err != nil {
		return 0, 0, fmt.Errorf("write the fence: %w", err)
	}
	return seq, before, nil
}
