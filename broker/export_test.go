package broker

import (
	"time"

	"github.com/droverhq/drover/broker/partition/repeats"
	"github.com/droverhq/drover/broker/runs"
)

// Busy keeps the loop of a partition busy for a while, so that what comes meanwhile is one batch.
func (b *Broker) Busy(n int, d time.Duration) {
	b.part(n).Post(func() { time.Sleep(d) })
}

// ReadRecordsByThemselves has brokers read the records of runs one by one, however near they stand, until restored. None may run meanwhile.
func ReadRecordsByThemselves() (restore func()) {
	was := runs.FarApart
	runs.FarApart = 0
	return func() { runs.FarApart = was }
}

// Runs are how many runs the owner of a partition has in memory, asleep or not.
func (b *Broker) Runs(n int) int { return b.part(n).Counts().Runs }

// Buried is how many letters of signals the owner of a partition keeps in mind.
func (b *Broker) Buried(n int) int { return b.part(n).Counts().Letters }

// Remembered is how many ids of requests the owner of a partition has in its index.
func (b *Broker) Remembered(n int) int { return b.part(n).Counts().RequestIDs }

// RememberFewer lets the indexes of owners have fewer ids, until restored. No owner may run meanwhile.
func RememberFewer(most int) (restore func()) {
	was, block := repeats.MostIDs, repeats.BlockIDs
	repeats.MostIDs, repeats.BlockIDs = most, most/16
	return func() { repeats.MostIDs, repeats.BlockIDs = was, block }
}
