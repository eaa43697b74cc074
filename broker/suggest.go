package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/droverhq/drover/broker/partition"
)

// SuggestContinuations asks the open runs of the partitions that this broker owns to continue as
// new, as before a recycle of the node: those with a continuation policy, of which nothing is open
// at the moment (S2-6). Nothing is written about any other run. It returns how many were asked. It
// reads the headers of all records of these partitions, and the runs that are not in memory, some
// at once.
func (b *Broker) SuggestContinuations(ctx context.Context) (asked int, err error) {
	b.mu.Lock()
	parts := slices.SortedFunc(maps.Values(b.parts),
		func(p, q *partition.Partition) int { return p.Number() - q.Number() })
	b.mu.Unlock()
	for _, p := range parts {
		n, failed := p.SuggestContinuations(ctx)
		asked += n
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("partition %d: %w", p.Number(), failed))
		}
	}
	return asked, err
}
