package nodes

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/schemas"
)

// Where no master is left to say so in its record, a node that is silent is not responding all the same.
func TestNodesWithoutAMaster(t *testing.T) {
	drovertest.Run(t, nil, func(t *testing.T, e *drovertest.Env) {
		r, err := nodes.Open(natsconn.Of(e.Client), nodes.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := r.Join(t.Context(), schemas.NodeRecord{Node: "n", Boot: "b", Namespace: "default"}, nodes.JoinOptions{})
		if err == nil {
			err = m.Set(t.Context(), schemas.NodeReady)
		}
		if err != nil {
			t.Fatal(err)
		}
		status := func(want schemas.NodeStatus, alive bool) NodeInfo {
			t.Helper()
			all, err := readNodes(t.Context(), e.Client)
			if err != nil || len(all) != 1 || all[0].Status != want || all[0].Alive != alive || nodeRow(all[0])[1] != string(want) {
				t.Fatalf("got %+v, %v, want one that is %s", all, err, want)
			}
			return all[0]
		}
		status(schemas.NodeReady, true)
		m.Close()
		time.Sleep(9 * time.Second)
		status(schemas.NodeReady, true)
		time.Sleep(2 * time.Second)
		if n := status(schemas.NodeNotResponding, false); n.Since != n.HeardAt {
			t.Errorf("got since %v, want the last sign of life at %v", n.Since, n.HeardAt)
		}
	})
}

// Whoever may write a record of a node moves no cursor of those who look at it.
func TestHostileNodes(t *testing.T) {
	const red = "\x1b[31m\n"
	row := strings.Join(nodeRow(NodeInfo{NodeRecord: schemas.NodeRecord{
		Node: red, Status: red, Roles: []string{"broker", red}, Namespaces: []string{red}, Version: red, Profile: red,
	}}), " ")
	if strings.ContainsAny(row, red[:1]+"\n") {
		t.Errorf("got %q, want no control characters", row)
	}
	if got := nodeRow(NodeInfo{NodeRecord: schemas.NodeRecord{Status: schemas.NodeReady, Roles: []string{"broker", "timers"}, Profile: "dev"}}); got[1] != "ready" || got[4] != "broker+timers" || got[8] != "dev" {
		t.Errorf("got %q", got)
	}
}
