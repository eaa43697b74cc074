package broker_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Partitions that begin together are not to have full blocks together: NATS compresses all of them at once, and who wants to work waits
// (ADR 0038).
func TestHistoriesFillAtDifferentTimes(t *testing.T) {
	const partitions = 10
	const ns = subject.Namespace("default")
	// fences writes two fences into each partition of a new store and returns the lengths of the first ones' padding, in KiB.
	fences := func(t *testing.T, largest int, o topology.Options) (kib []int) {
		t.Helper()
		server := embeddedtest.Serve(t, embedded.Options{StoreDir: t.TempDir(), DontListen: true, MaxPayload: largest})
		conn := embeddedtest.Connect(t, server)
		o.Partitions = partitions
		if _, err := topology.Ensure(t.Context(), conn, o); err != nil {
			t.Fatal(err)
		}
		for p := range partitions {
			for claim := range uint64(2) {
				if _, err := broker.Fence(t.Context(), conn, ns, p, claim+1, "node"); err != nil {
					t.Fatal(err)
				}
				m, err := conn.LastBySubject(t.Context(), ns.StreamHistory(p), ns.Fence(p))
				if err != nil {
					t.Fatal(err)
				}
				var f schemas.Fence
				if err := schemas.Unmarshal(m.Data, &f); err != nil || f.Claim != claim+1 {
					t.Fatalf("partition %d: got claim %d (%v), want %d", p, f.Claim, err, claim+1)
				}
				switch n := len(f.Padding); {
				case claim == 0 && n == bytes.Count(f.Padding, []byte{0}) && n%1024 == 0:
					kib = append(kib, n/1024)
				case claim == 0:
					t.Errorf("partition %d: got a padding of %d bytes, want whole KiB of zeros", p, n)
				case n > 0:
					t.Errorf("partition %d: the second fence has a padding of %d bytes, want none", p, n)
				}
			}
		}
		return kib
	}
	none := make([]int, partitions)
	for _, tc := range []struct {
		name    string
		largest int // message, in bytes
		o       topology.Options
		want    []int
	}{
		{"compressed", 1 << 20, topology.Options{Compression: topology.CompressionS2}, []int{0, 64, 128, 192, 256, 320, 384, 448, 0, 64}},
		{"small messages", 128 << 10, topology.Options{Compression: topology.CompressionS2}, []int{0, 64, 64, 64, 64, 64, 64, 64, 0, 64}},
		{"not compressed", 1 << 20, topology.Options{}, none},
		{"memory", 1 << 20, topology.Options{Memory: true, Compression: topology.CompressionS2}, none},
		{"limited", 1 << 20, topology.Options{MaxBytes: 16 << 20, Compression: topology.CompressionS2}, none},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := fences(t, tc.largest, tc.o); !slices.Equal(got, tc.want) {
				t.Errorf("got paddings of %d KiB, want %d", got, tc.want)
			}
		})
	}
}
