package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/topology"
	"github.com/nats-io/nats.go/jetstream"
)

// Histories are compressed where somebody has asked for it (ADR 0045).
func TestHistoriesAreCompressedOnDemand(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for _, step := range []struct {
		ask, want string
	}{
		{"", "none"}, {"s2", "s2"}, {"", "s2"}, {"none", "none"}, {"", "none"},
	} {
		ns, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1, Compression: step.ask})
		if err != nil {
			t.Fatal(err)
		}
		want := jetstream.NoCompression
		if step.want == topology.CompressionS2 {
			want = jetstream.S2Compression
		}
		if got := config(t, conn, ns.Name.StreamHistory(0)).Compression; got != want || ns.Compression != step.want {
			t.Errorf("asked for %q: the namespace says %q and its histories have %v, want %q", step.ask, ns.Compression, got, step.want)
		}
		if i, err := topology.Describe(t.Context(), conn, ns.Name); err != nil || i.Compression != step.want {
			t.Errorf("asked for %q: it is described as %+v (%v), want %q", step.ask, i, err, step.want)
		}
	}
}

func TestCompressionThatCannotBe(t *testing.T) {
	conn := dial(t, embedded.Options{})
	for _, tc := range []struct {
		o    topology.Options
		want string
	}{
		{topology.Options{Compression: "zip"}, "use none or s2"},
		{topology.Options{Compression: "s2", Replicas: 3}, "3 copies"},
	} {
		if _, err := topology.Ensure(t.Context(), conn, tc.o); !errors.Is(err, topology.ErrInvalidOptions) || !strings.Contains(err.Error(), "Compression is ") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%+v: got %v, want it to name Compression and to say %q", tc.o, err, tc.want)
		}
	}
}
