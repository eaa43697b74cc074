package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/topology"
	"github.com/nats-io/nats.go/jetstream"
)

// A namespace that is made on a server of ours that syncs each write acknowledges tasks and alarms before they are written, and
// nothing else (P-8). It stays so whoever opens it; one that was made otherwise keeps what it has, and its histories take
// batches from then on.
func TestRelaxedNamespace(t *testing.T) {
	conn := dial(t, embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileSingle})
	for _, tc := range []struct {
		namespace                string
		made, opened             bool // with Synced
		relaxed, batches, memory bool
	}{
		{namespace: "single", made: true, opened: true, relaxed: true, batches: true},
		{namespace: "moved", made: true, opened: false, relaxed: true, batches: true},
		{namespace: "old", made: false, opened: true, relaxed: false, batches: true},
		{namespace: "elsewhere", made: false, opened: false},
		{namespace: "memory", made: true, opened: true, memory: true},
	} {
		t.Run(tc.namespace, func(t *testing.T) {
			for _, synced := range []bool{tc.made, tc.opened} {
				got, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: tc.namespace, Partitions: 1, Synced: synced, Memory: tc.memory})
				if err != nil {
					t.Fatal(err)
				}
				if got.Relaxed != tc.relaxed {
					t.Fatalf("got relaxed %v, want %v", got.Relaxed, tc.relaxed)
				}
				if strings.Contains(got.String(), "relaxed=true") != tc.relaxed {
					t.Fatalf("got %v", got)
				}
				if err := topology.EnsureList(t.Context(), conn, got.Name, "l", topology.ListOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			i, err := topology.Inspect(t.Context(), conn, "single")
			if tc.namespace == "single" && (err != nil || len(i.Differences) > 0) {
				t.Fatalf("got %v, %+v, want nothing to complain of", err, i.Differences)
			}
			early := []string{"drover-" + tc.namespace + "-alarms-0", "drover-" + tc.namespace + "-tasks-l"}
			for _, name := range names(t, conn) {
				c := config(t, conn, name)
				if c.Metadata["drover.namespace"] != tc.namespace {
					continue
				}
				if want := tc.relaxed && slices.Contains(early, name); (c.PersistMode == jetstream.AsyncPersistMode) != want {
					t.Errorf("%s: persist mode %v, want async: %v", name, c.PersistMode, want)
				}
				if want := tc.batches && name == "drover-"+tc.namespace+"-history-0"; c.AllowAtomicPublish != want {
					t.Errorf("%s: takes batches: %v, want %v", name, c.AllowAtomicPublish, want)
				}
				if i != nil && tc.namespace == "single" && i.Repeatable(name) != slices.Contains(early, name) {
					t.Errorf("%s is repeatable: %v", name, i.Repeatable(name))
				}
			}
		})
	}
}
