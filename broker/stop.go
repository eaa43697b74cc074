package broker

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/partition"
	"github.com/droverhq/drover/internal/sleep"
)

// ownPartitions claims the partitions until ctx is done; then it says first that this broker
// leaves, so that the others take each partition at once when it is given back.
func (b *Broker) ownPartitions(ctx context.Context) (wait func() (stopped time.Time)) {
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	left := make(chan struct{})
	b.holders.Go(func() { b.WatchClock(holding) })
	b.holders.Go(func() { b.watchQuorum(holding) })
	b.holders.Go(func() { b.WatchServerQuota(holding) })
	b.holders.Go(func() {
		b.Share.Watch(holding, ctx, func() { close(left) }, func(err error) {
			b.Options.Logger.WithError(err).Warn("the other brokers cannot be seen now")
		})
	})
	for n := range b.Options.Partitions {
		b.holders.Go(func() { b.ownPartition(holding, n) })
	}
	return func() time.Time {
		<-ctx.Done()
		stopped := time.Now()
		await(left, partition.LeaveLimit)
		release()
		b.holders.Wait()
		return stopped
	}
}

// finish lets end what is on its way once all partitions are given back: answers of deciders that
// are passed on, and requests to the API, which is heard until then.
func (b *Broker) finish(stopped time.Time) {
	done := make(chan struct{})
	go func() { b.Passing.Wait(); close(done) }()
	await(done, b.Options.DrainTimeout-time.Since(stopped))
	ctx, cancel := context.WithTimeout(b.Background, partition.LeaveLimit)
	defer cancel()
	if err := b.api.Drain(ctx); err != nil {
		b.Options.Logger.WithError(err).
			Debug("the API did not end in time; who was not answered asks again")
	}
	for !b.Relay.Idle() && sleep.For(ctx, time.Millisecond) == nil {
	}
	await(b.Answering.Idle(), partition.LeaveLimit)
}

// await waits until ch is closed, for d at most.
func await(ch <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ch:
	case <-t.C:
	}
}
