package topology

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go/jetstream"
)

// aboveFences has a bucket of claims that is made over histories which are there begin above their fences. The number of a claim is
// its revision in the bucket, and a fence is written above a lower number only (P-2): in a bucket that began at 1 again nobody could
// fence a partition before the bucket had seen as many writes as the one that was lost, which takes days.
//
// A claim of the lost bucket that was not used for a fence yet may have a number above that. It fences the new owner off once at most,
// which then takes a higher number.
func (w *work) aboveFences(ctx context.Context, conn *post.Conn, ns *Namespace, claims *jetstream.StreamConfig) error {
	switch _, err := w.info(ctx, claims.Name); {
	case err == nil:
		return nil
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return err
	}
	belongs, err := w.belongings(ctx, ns.Name)
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(belongs))
	for _, s := range belongs {
		there[s.Config.Name] = s.State.Msgs > 0
	}
	for p := range ns.Partitions {
		if !there[ns.Name.StreamHistory(p)] {
			continue
		}
		number, err := w.fenced(ctx, conn, ns.Name, p)
		if err != nil {
			return err
		}
		if number > 0 {
			claims.FirstSeq = max(claims.FirstSeq, number+1)
		}
	}
	return nil
}

// fenced is the number of the claim that has fenced a partition last, 0 for none.
func (w *work) fenced(ctx context.Context, conn *post.Conn, ns subject.Namespace, partition int) (uint64, error) {
	var last *post.Stored
	err := w.retry(ctx, func(ctx context.Context) (err error) {
		last, err = conn.LastBySubject(ctx, ns.StreamHistory(partition), ns.Fence(partition))
		return err
	})
	if errors.Is(err, post.ErrNotFound) {
		return 0, nil
	}
	var f schemas.Fence
	if err == nil {
		err = schemas.Unmarshal(last.Data, &f)
	}
	if err != nil {
		return 0, fmt.Errorf("read the fence of partition %d, above which the claims begin: %w", partition, err)
	}
	return f.Claim, nil
}
