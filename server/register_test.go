package server

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// A start that fails is no acknowledgement either.
func TestAnUnexpectedShutdownIsKeptAfterAStartThatFails(t *testing.T) {
	url, o := bare(t)
	died(t, url, "n")
	r := registry(t, dialed(t, url))
	log, _ := listening()
	o.Node, o.AfterCrash, o.Roles, o.Logger = "n", AfterCrashHalt, []string{"juggler"}, log
	s := &Server{o: o, ready: make(chan struct{}), ended: make(chan struct{})} // New would refuse it
	if err := s.Run(t.Context()); !errors.Is(err, errUnknownRole) {
		t.Fatalf("got %v, want a start that fails after the word of the node", err)
	}
	if got := statusOf(t, r, "n"); got != schemas.NodeUnexpectedShutdown {
		t.Fatalf("got %q after the start, want %s", got, schemas.NodeUnexpectedShutdown)
	}
}

func TestS3_02AnUnexpectedShutdownIsLogged(t *testing.T) {
	url, o := bare(t)
	died(t, url, "n")
	log, kept := listening()
	o.Node, o.Logger = "n", log
	began := time.Now()
	s := serving(t, o)
	if took := time.Since(began); s.Node != "n" || took > 5*time.Second {
		t.Fatalf("got node %q after %v: a name that was given is usable at once", s.Node, took)
	}
	if !logged(kept, logrus.WarnLevel, "unexpected shutdown") {
		t.Fatalf("got log %v, want a line about the unexpected shutdown", kept.AllEntries())
	}
	if got := statusOf(t, registry(t, dialed(t, url)), "n"); got != schemas.NodeReady {
		t.Fatalf("got %q, want %s", got, schemas.NodeReady)
	}
}

// A server with a store of its own knows its earlier self by the store, however short ago that was.
func TestEarlierSelfOnTheSameStore(t *testing.T) {
	o := Options{Embedded: embedded.Options{StoreDir: t.TempDir(), Port: -1, Profile: embedded.ProfileDev}, Partitions: 1}
	s := serving(t, o)
	name := s.Node
	r := registry(t, dialed(t, s.URL))
	i, err := r.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if i.Profile != "dev" || i.Sync != "1s" || i.StoreID == "" || i.URL != s.URL || i.Server == "" || i.ServerVersion == "" || i.DiskTotal == 0 || i.PID == 0 ||
		!slices.Equal(i.Roles, allRoles) || !slices.Equal(i.Namespaces, []string{"default"}) || i.Namespace != "default" {
		t.Fatalf("got record %+v", i.NodeRecord)
	}
	// The record of another boot is put in place of that which a crash would leave.
	former := i.NodeRecord
	former.Boot = "earlier"
	s.end(t)
	s = serving(t, o)
	r = registry(t, dialed(t, s.URL))
	if _, err := r.Join(t.Context(), former, nodes.JoinOptions{}); err != nil {
		t.Fatalf("%v: want the record of another boot of the same store taken at once", err)
	}
	s.end(t)
}

// What did not end properly keeps its record; so the next start knows.
func TestAFailedNodeKeepsItsRecord(t *testing.T) {
	url, o := bare(t)
	conn := dialed(t, url)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	for _, failed := range []bool{true, false} {
		o.Logger, _ = listening()
		o.Node = fmt.Sprint("failed-", failed)
		n, ctx := newNode(t.Context(), o)
		if err := n.open(ctx); err != nil {
			t.Fatal(err)
		}
		n.failed = failed
		n.close()
		if there := statusOf(t, registry(t, conn), o.Node) != ""; there != failed {
			t.Fatalf("failed %v: got a record %v", failed, there)
		}
	}
}
