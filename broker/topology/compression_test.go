package topology

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// NATS 2.15.2 loses a copy of a compressed stream when a node of a cluster is started again: it cuts the store back to the
// snapshot of the Raft log while the last block is being compressed. Histories with several copies are not compressed, and
// those that were are changed.
func TestReplicatedHistoriesAreNotCompressed(t *testing.T) {
	for _, tc := range []struct {
		replicas    int
		compression string
		want        jetstream.StoreCompression
	}{
		{0, CompressionS2, jetstream.S2Compression},
		{1, CompressionS2, jetstream.S2Compression},
		{1, CompressionNone, jetstream.NoCompression},
		{3, CompressionS2, jetstream.NoCompression},
		{5, CompressionNone, jetstream.NoCompression},
	} {
		n := &Namespace{Name: "default", Partitions: 1, Replicas: tc.replicas, Compression: tc.compression}
		for _, w := range n.streams("v") {
			if w.Name != n.Name.StreamHistory(0) {
				if w.Compression != jetstream.NoCompression {
					t.Errorf("%s with %d replicas: got compression %v, want none", w.Name, tc.replicas, w.Compression)
				}
				continue
			}
			if w.Compression != tc.want {
				t.Errorf("%s with %d replicas: got compression %v, want %v", w.Name, tc.replicas, w.Compression, tc.want)
			}
			have := w.StreamConfig
			have.Compression = jetstream.S2Compression
			if next, _ := w.merge(&have); next.Compression != tc.want {
				t.Errorf("%s with %d replicas: got compression %v after a change, want %v", w.Name, tc.replicas, next.Compression, tc.want)
			}
		}
	}
}
