package timers

import (
	"testing"
	"time"
)

// Partitions purge one after the other, with time between them for others.
func TestPurgesTakeTurns(t *testing.T) {
	var purgeScheduler purgeScheduler
	at := time.Unix(1000, 0)
	if !purgeScheduler.take(at) || purgeScheduler.take(at) || purgeScheduler.take(at.Add(time.Hour)) {
		t.Fatal("want one purge at a time")
	}
	ended := at.Add(20 * time.Millisecond)
	purgeScheduler.done(at, ended)
	if purgeScheduler.take(ended.Add(320*time.Millisecond - 1)) {
		t.Error("a purge began right after one that took 20 ms, want it to wait for 320")
	}
	if !purgeScheduler.take(ended.Add(320 * time.Millisecond)) {
		t.Error("no purge after 320 ms")
	}
	purgeScheduler.done(ended, ended)
	if !purgeScheduler.take(ended) {
		t.Error("one that took no time is waited for")
	}
}
