package topology

import "testing"

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
