package topology

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/subject"
)

// A plan names each stream once; what is made of it on a server is tested with Ensure.
func TestPlan(t *testing.T) {
	n := &Namespace{Name: "acme", Partitions: 2, Replicas: 1}
	seen := map[string]bool{}
	for _, c := range n.Plan("PCI") {
		if seen[c.Name] || c.Name == "" || len(c.Subjects) == 0 {
			t.Fatalf("got a second or empty stream %q of %v", c.Name, c.Subjects)
		}
		seen[c.Name] = true
	}
	for _, want := range []string{n.Name.StreamSignals(), n.Name.StreamHistory(1), n.Name.StreamTasks("PCI"), "KV_" + n.Name.BucketClaims(), n.Name.StreamPayloads()} {
		if !seen[want] {
			t.Fatalf("got %v, want %s among them", seen, want)
		}
	}
}

// The bucket of the nodes is that of all namespaces: one with fewer copies takes none away from the others, one with more adds some.
func TestSharedBucketKeepsItsCopies(t *testing.T) {
	nodes := func(replicas int) wanted {
		all := (&Namespace{Name: "acme", Partitions: 1, Replicas: replicas}).buckets("1.0.0")
		at := slices.IndexFunc(all, func(w wanted) bool { return w.Name == "KV_"+subject.BucketNodes })
		return all[at]
	}
	for _, tt := range []struct{ have, want, got int }{{3, 1, 3}, {1, 3, 3}, {3, 3, 3}} {
		has, asks := nodes(tt.have), nodes(tt.want)
		next, changed := asks.merge(&has.StreamConfig)
		if next.Replicas != tt.got || (len(changed) > 0) != (tt.have != tt.got) {
			t.Errorf("%d copies, and %d are asked for: got %d, changed %v, want %d", tt.have, tt.want, next.Replicas, changed, tt.got)
		}
	}
}

// What is acknowledged before it is written has one copy: of a stream with several the server would refuse it.
func TestRelaxedHasOneCopy(t *testing.T) {
	for replicas, want := range map[int]bool{0: true, 1: true, 3: false} {
		if got := (Options{Namespace: "acme", Synced: true, Replicas: replicas}).fresh(); got.Relaxed != want {
			t.Errorf("%d copies: relaxed %v, want %v", replicas, got.Relaxed, want)
		}
	}
}
