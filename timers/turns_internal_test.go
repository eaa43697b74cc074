package timers

import (
	"testing"
	"time"
)

// Partitions purge one after the other, with time between them for others.
func TestPurgesTakeTurns(t *testing.T) {
	var turns turns
	at := time.Unix(1000, 0)
	if !turns.take(at) || turns.take(at) || turns.take(at.Add(time.Hour)) {
		t.Fatal("want one purge at a time")
	}
	ended := at.Add(20 * time.Millisecond)
	turns.done(at, ended)
	if turns.take(ended.Add(320*time.Millisecond - 1)) {
		t.Error("a purge began right behind one that took 20 ms, want it to wait for 320")
	}
	if !turns.take(ended.Add(320 * time.Millisecond)) {
		t.Error("no purge behind 320 ms")
	}
	turns.done(ended, ended)
	if !turns.take(ended) {
		t.Error("one that took no time is waited for")
	}
}
