package topology_test

import (
	"errors"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/topology"
	"github.com/google/go-cmp/cmp"
)

// A namespace that has lost its signals stream, which says what it is, is made anew as its other streams are, and nothing of these
// is changed: with the default number of partitions nobody would find its workflows.
func TestSignalsStreamIsGone(t *testing.T) {
	conn := dial(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev})
	made := topology.Options{Partitions: 2, MaxBytes: 1 << 30, Compression: topology.CompressionS2, Synced: true}
	before, err := topology.Ensure(t.Context(), conn, made)
	if err != nil {
		t.Fatal(err)
	}
	js := conn.JetStream()
	if err := js.DeleteStream(t.Context(), before.Name.StreamSignals()); err != nil {
		t.Fatal(err)
	}
	left := names(t, conn)

	if n, err := topology.Remains(t.Context(), conn, before.Name); n != 2 || err != nil {
		t.Fatalf("got %d partitions left, %v, want 2", n, err)
	}
	_, err = topology.Ensure(t.Context(), conn, topology.Options{Partitions: 4})
	if c, ok := errors.AsType[*topology.ConflictError](err); !ok || c.Have != "2" || c.Want != "4" {
		t.Fatalf("another number of partitions: got %v, want a conflict", err)
	}
	if d := cmp.Diff(left, names(t, conn)); d != "" {
		t.Fatal("the refusal made or removed something:", d)
	}

	configs := map[string]any{}
	for _, n := range left {
		configs[n] = config(t, conn, n)
	}
	after, err := topology.Ensure(t.Context(), conn, topology.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := *before
	want.Synced = false // what a caller says of the server, not kept
	if d := cmp.Diff(&want, after); d != "" {
		t.Fatal(d)
	}
	for _, n := range left {
		if d := cmp.Diff(configs[n], any(config(t, conn, n))); d != "" {
			t.Fatalf("%s: %s", n, d)
		}
	}
}

// Nothing is left where nothing was.
func TestNothingRemains(t *testing.T) {
	conn := dial(t, embedded.Options{})
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "other", Memory: true}); err != nil {
		t.Fatal(err)
	}
	if n, err := topology.Remains(t.Context(), conn, "default"); n != 0 || err != nil {
		t.Fatalf("got %d, %v, want 0", n, err)
	}
}
