package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// The home is changed, and served anew for that. Its master still looks after the nodes.
func TestNodesAreLookedAfterAfterAChangeOfTheHome(t *testing.T) {
	url, o := bare(t)
	o.Node, o.ClaimTTL = "alive", time.Second
	s := serving(t, o)
	command("", "namespace", "create", "default", "--retention", "30d", "--nats", url).done(t)
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

// The only server of a namespace that is changed serves it again at once, not when it happens to look next.
func TestHomeIsBackAfterAChange(t *testing.T) {
	url, o := bare(t)
	log, kept := listening()
	log.SetLevel(logrus.InfoLevel)
	o.Logger = log
	s := serving(t, o)
	defer s.end(t)
	command("", "namespace", "create", "default", "--retention", "30d", "--nats", url).done(t)
	took := poll.Until(t, 20*time.Second, "served again", func() bool {
		return slices.ContainsFunc(kept.AllEntries(), func(e *logrus.Entry) bool { return e.Message == "the namespace is served" })
	})
	if took > 5*time.Second {
		t.Errorf("nobody served the namespace for %v", took)
	}
}
