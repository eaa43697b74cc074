package claims

import (
	"fmt"
	"testing"
)

// Partitions are spread evenly enough, and a node that comes or goes moves its own share only.
func TestPreferred(t *testing.T) {
	const partitions = 256
	nodes := []string{"n1", "n2", "n3", "n4"}
	count := map[string]int{}
	for p := range partitions {
		owner := preferred(p, nodes, nodes[0])
		count[owner]++
		for _, self := range nodes {
			if got := preferred(p, nodes, self); got != owner {
				t.Fatalf("partition %d: %s prefers %s and %s prefers %s", p, nodes[0], owner, self, got)
			}
		}
		if next := preferred(p, nodes[:3], nodes[0]); owner != "n4" && next != owner {
			t.Fatalf("partition %d moves from %s to %s because n4 has gone", p, owner, next)
		}
		if alone := preferred(p, nil, "n9"); alone != "n9" {
			t.Fatalf("partition %d prefers %s over the only node", p, alone)
		}
		if other := preferred(p, []string{"n1"}, "n9"); other != "n1" {
			t.Fatalf("partition %d prefers %s, which the others do not know", p, other)
		}
	}
	for _, n := range nodes {
		if count[n] < partitions/8 || count[n] > partitions/2 {
			t.Errorf("%s has %d of %d partitions: %s", n, count[n], partitions, fmt.Sprint(count))
		}
	}
}
