package topology_test

import (
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/topology"
	"github.com/google/go-cmp/cmp"
)

// A namespace that has lost its signals stream, which says what it is, is made anew as its other streams are, and nothing of these
// is changed: with the default number of partitions nobody would find its workflows.
func TestSignalsStreamIsGone(t *testing.T) {
	conn := dial(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev})
	made := topology.Options{Partitions: 2, MaxBytes: 128 << 20, Compression: topology.CompressionS2, Synced: true}
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
	// Perhaps all was to be kept: until somebody says otherwise nothing is purged.
	want.Retention, want.FlowRetention = "forever", "forever"
	if d := cmp.Diff(&want, after); d != "" {
		t.Fatal(d)
	}
	for _, n := range left {
		if d := cmp.Diff(configs[n], any(config(t, conn, n))); d != "" {
			t.Fatalf("%s: %s", n, d)
		}
	}
}

// Who makes a namespace anew that has lost its signals stream can say at once how long closed runs are kept, and the server that opens it
// then does not change that. What is left out is kept for ever, until somebody says it.
func TestRetentionIsSaidAgain(t *testing.T) {
	conn := dial(t, embedded.Options{})
	ns, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1, Retention: "30d", FlowRetention: "5"})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.JetStream().DeleteStream(t.Context(), ns.Name.StreamSignals()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ others, flows, wantOthers, wantFlows string }{
		{"30d", "", "30d", "forever"},
		{"", "", "30d", "forever"},
		{"", "3 soft 3", "30d", "3 soft 3"},
		{"7d", "", "7d", "3 soft 3"},
	} {
		got, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Retention: tt.others, FlowRetention: tt.flows})
		if err != nil {
			t.Fatal(err)
		}
		if got.Retention != tt.wantOthers || got.FlowRetention != tt.wantFlows {
			t.Errorf("said %q and %q: got %q for others and %q for flows, want %q and %q", tt.others, tt.flows, got.Retention, got.FlowRetention, tt.wantOthers, tt.wantFlows)
		}
	}
}

// Claims that are made anew have numbers above those of the fences that are there, or nobody could fence a partition for days.
func TestClaimsBeginAboveTheFences(t *testing.T) {
	conn := dial(t, embedded.Options{})
	ns, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 3})
	if err != nil {
		t.Fatal(err)
	}
	for p, claim := range []uint64{900_000, 700_000} { // nobody has owned the third
		if _, err := handover.Fence(t.Context(), conn, ns.Name, p, claim, "n1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.JetStream().DeleteStream(t.Context(), "KV_"+ns.Name.BucketClaims()); err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{0, 16 << 20} { // the second changes the bucket that the first has made
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, MaxBytes: limit}); err != nil {
			t.Fatal(err)
		}
	}
	rev, err := conn.KVCreate(t.Context(), ns.Name.BucketClaims(), "partition.0", []byte("x"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handover.Fence(t.Context(), conn, ns.Name, 0, rev, "n2"); err != nil {
		t.Fatalf("the first claim of the new bucket has number %d: %v", rev, err)
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
