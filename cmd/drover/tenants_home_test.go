package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// The home is changed, and served anew for that. Its master still looks after the nodes.
func TestNodesAreLookedAfterBehindAChangeOfTheHome(t *testing.T) {
	url, o := bare(t)
	o.Node, o.ClaimTTL = "alive", time.Second
	s := serving(t, o)
	if r := command("", "namespace", "create", "default", "--retention", "30d", "--nats", url); r.code != exitDone {
		t.Fatalf("got %+v", r)
	}
	died(t, url, "dead")
	silent := make(chan struct{}, 16)
	watch, err := dialed(t, url).KVWatch(t.Context(), subject.BucketNodes, func(_ string, body []byte, _ uint64, _ bool) {
		var rec schemas.NodeRecord
		if json.Unmarshal(body, &rec) == nil && rec.Node == "dead" && rec.Status == schemas.NodeNotResponding {
			silent <- struct{}{}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	select {
	case <-silent:
	case <-time.After(20 * time.Second):
		t.Error("nobody has marked the node that is dead")
	}
	s.end(t)
}
