package broker

import "time"

// Busy keeps the loop of a partition busy for a while, so that what comes meanwhile is one batch.
func (b *Broker) Busy(n int, d time.Duration) {
	b.part(n).loop.post(func() { time.Sleep(d) })
}
