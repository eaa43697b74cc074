package claims

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/virtual"
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

// A list may have been read before the bucket told who has come or left, or come from a replica that has not heard of it: for two
// looks it is not believed about them.
func TestListAfterAChange(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		c, err := Open(new(natsconn.Conn), "b", Options{Node: "a", LookEvery: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		s := c.Share(RoleBroker)
		list := []Info{{Key: Alarms(0)}, {Key: "broker.a"}, {Key: "broker.b"}, {Key: "broker.dead", Expired: true}, {Key: "timers.b"}, {Key: Master}}
		want := func(when string, live ...string) {
			t.Helper()
			if got := slices.Sorted(slices.Values(s.live)); !slices.Equal(got, live) {
				t.Errorf("%s: got %v, want %v", when, got, live)
			}
		}
		s.update(list)
		want("a list", "a", "b")
		s.changed("b", true)
		want("b has left", "a")
		s.update(list)
		want("a list of before", "a")
		s.update([]Info{{Key: "broker.a"}})
		want("a list of after", "a")
		s.changed("b", false)
		s.changed("b", false)
		want("b is back, and renews", "a", "b")
		s.update(list)
		want("a list, b is back", "a", "b")
		s.changed("b", true)
		time.Sleep(2*c.opts.LookEvery + 1)
		s.update(list)
		want("a list long after", "a", "b")
		s.changed("c", false)
		s.changed("dead", false) // what has expired may be shown
		s.update(list)
		want("a list of before c came", "a", "b", "c")
		time.Sleep(2*c.opts.LookEvery + 1)
		s.update(list)
		want("c is not listed long after", "a", "b")
		if len(s.told) > 0 {
			t.Errorf("it remembers %v for ever", s.told)
		}
	})
}
