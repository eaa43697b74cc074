package topology

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// NATS 2.15.2 loses a copy of a compressed stream when a node of a cluster is started again: it cuts the store back to the
// snapshot of the Raft log while the last block is being compressed. Histories with several copies are not compressed, and
// those that were are changed.
func TestReplicatedHistoriesAreNotCompressed(t *testing.T) {
	for replicas, want := range map[int]jetstream.StoreCompression{0: jetstream.S2Compression, 1: jetstream.S2Compression, 3: jetstream.NoCompression, 5: jetstream.NoCompression} {
		n := &Namespace{Name: "default", Partitions: 1, Replicas: replicas}
		for _, w := range n.streams("v") {
			if w.Name != n.Name.StreamHistory(0) {
				if w.Compression != jetstream.NoCompression {
					t.Errorf("%s with %d replicas: got compression %v, want none", w.Name, replicas, w.Compression)
				}
				continue
			}
			if w.Compression != want {
				t.Errorf("%s with %d replicas: got compression %v, want %v", w.Name, replicas, w.Compression, want)
			}
			have := w.StreamConfig
			have.Compression = jetstream.S2Compression
			if next, _ := w.merge(&have); next.Compression != want {
				t.Errorf("%s with %d replicas: got compression %v after a change, want %v", w.Name, replicas, next.Compression, want)
			}
		}
	}
}
