package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	nodescmd "github.com/droverhq/drover/cmd/drover/nodes"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// bare is a NATS server that knows nothing of Drover, and options for nodes beside it.
func bare(t *testing.T) (url string, o server.Options) {
	t.Helper()
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	return nats.ClientURL(), server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 2}
}

func registry(t *testing.T, conn *natsconn.Conn) *nodes.Registry {
	t.Helper()
	r, err := nodes.Open(conn, nodes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// died leaves the record of a node that ended without a word a moment ago.
func died(t *testing.T, url, name string) {
	t.Helper()
	conn := dialed(t, url)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	m, err := registry(t, conn).Join(t.Context(), schemas.NodeRecord{Node: name, PID: 4711, Boot: "earlier", Namespace: "default"}, nodes.JoinOptions{Given: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Set(t.Context(), schemas.NodeReady); err != nil {
		t.Fatal(err)
	}
	m.Close()
}

func statusOf(t *testing.T, r *nodes.Registry, name string) schemas.NodeStatus {
	t.Helper()
	list, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range list {
		if i.Node == name {
			return i.Status
		}
	}
	return ""
}

func logged(kept *logtest.Hook, level logrus.Level, text string) bool {
	return slices.ContainsFunc(kept.AllEntries(), func(e *logrus.Entry) bool { return e.Level == level && strings.Contains(e.Message, text) })
}

func TestS3_02AnUnexpectedShutdownHaltsUntilAcknowledged(t *testing.T) {
	url, o := bare(t)
	died(t, url, "n")
	r := registry(t, dialed(t, url))
	on := against(url)
	log, kept := listening()
	o.Node, o.AfterCrash, o.Logger = "n", server.AfterCrashHalt, log
	s, ready := beginning(t, o)
	halted := func() {
		t.Helper()
		poll.Until(t, 20*time.Second, "unexpected-shutdown", func() bool { return statusOf(t, r, "n") == schemas.NodeUnexpectedShutdown })
		// Its heartbeats go on, its roles do not begin, and nobody recovers.
		first, err := r.Find(t.Context(), "n")
		if err != nil {
			t.Fatal(err)
		}
		poll.Until(t, 20*time.Second, "a heartbeat", func() bool {
			i, err := r.Find(t.Context(), "n")
			return err == nil && i.Revision > first.Revision && i.Status == schemas.NodeUnexpectedShutdown
		})
		held, err := claims.Open(dialed(t, url), "drover-default-claims", claims.Options{Node: "observer"})
		if err != nil {
			t.Fatal(err)
		}
		if list, err := held.List(t.Context()); err != nil || len(list) != 0 {
			t.Fatalf("got claims %v, %v, want none", list, err)
		}
		select {
		case <-ready:
			t.Fatal("the node is ready")
		default:
		}
	}
	halted()
	if !logged(kept, logrus.ErrorLevel, "drover node ack n") {
		t.Fatalf("got log %v, want a line that says what to do", kept.AllEntries())
	}
	// A restart is no acknowledgement, nor is a planned stop.
	s.end(t)
	if got := statusOf(t, r, "n"); got != schemas.NodeUnexpectedShutdown {
		t.Fatalf("got %q after a stop, want %s", got, schemas.NodeUnexpectedShutdown)
	}
	s, ready = beginning(t, o)
	halted()
	if got := on("node", "list"); got.code != cli.ExitDone || !strings.Contains(got.stdout, "unexpected-shutdown") {
		t.Fatalf("got %+v", got)
	}
	on("node", "ack", "n", "--reason", "looked").want(t, cli.ExitDone, "node n is recovering\n")
	select {
	case s.Info = <-ready:
	case <-s.ended:
		t.Fatalf("the server ended: %v", s.err)
	}
	if got := statusOf(t, r, "n"); got != schemas.NodeReady {
		t.Fatalf("got %q, want %s", got, schemas.NodeReady)
	}
	on("node", "ack", "n").want(t, cli.ExitFailed, "", "n is ready", "no acknowledgement")
	s.end(t)
	if got := statusOf(t, r, "n"); got != "" {
		t.Fatalf("got %q after a clean stop, want no record", got)
	}
	s = serving(t, o) // what ended properly is not halted
	s.end(t)
}

func TestNodesAndClaims(t *testing.T) {
	url, o := bare(t)
	o.Node = "one"
	one := serving(t, o)
	died(t, url, "dead node")
	on := against(url)
	poll.Until(t, 20*time.Second, "one broker owns both partitions", func() bool {
		return strings.Count(on("claims").stdout, "partition.") == 2
	})

	table := strings.Split(strings.TrimSpace(on("node", "list").stdout), "\n")
	if len(table) != 3 || !strings.HasPrefix(table[0], "NODE ") || !strings.HasPrefix(table[1], `"dead node"`) ||
		!strings.Contains(table[2], "broker+timers+ops+flows") || !strings.Contains(table[2], " 0-1 ") || !strings.Contains(table[2], " default ") {
		t.Fatalf("got\n%s", strings.Join(table, "\n"))
	}
	var docs []nodescmd.NodeInfo
	for line := range strings.Lines(on("node", "list", "--json").stdout) {
		var n nodescmd.NodeInfo
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, n)
	}
	if len(docs) != 2 || docs[1].Node != "one" || docs[1].Status != schemas.NodeReady || !docs[1].Alive || docs[1].HeardAt == 0 || !slices.Equal(docs[1].Partitions, []int{0, 1}) {
		t.Fatalf("got %+v", docs)
	}
	if r := on("node", "list", "-o", "yaml"); r.code != cli.ExitDone || strings.Count(r.stdout, "\nstatus: ready\n") != 2 {
		t.Fatalf("got %+v", r)
	}

	if r := on("claims"); r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "CLAIM ") || strings.Count(r.stdout, "\n") != 1+7 || strings.Count(r.stdout, " in ") != 7 {
		t.Fatalf("got %+v", r) // broker.one, timers.one, master, and two each of partition and alarms
	}
	for line := range strings.Lines(on("claims", "--json").stdout) {
		var i nodescmd.ClaimInfo
		if err := json.Unmarshal([]byte(line), &i); err != nil || i.Node != "one" || i.Number == 0 || i.Expired || !i.ExpiresAt.Time().After(i.Since.Time()) {
			t.Fatalf("got %s: %v", line, err)
		}
	}
	on("claims", "-n", "nowhere").want(t, cli.ExitFailed, "", `no namespace "nowhere"`)
	if r := on("node", "list", "-n", "nowhere"); r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != 3 {
		t.Fatalf("got %+v, want the nodes without partitions", r)
	}

	for _, args := range [][]string{{"drain"}, {"node", "ack"}, {"node", "remove"}} {
		r := command("", append(append([]string{"__complete", "--nats", url}, args...), "o")...)
		if got := completed(t, r); !slices.Equal(got, []string{"one"}) {
			t.Fatalf("%v: got %q, want the node's name", args, got)
		}
	}
	on("node", "remove", "one").want(t, cli.ExitFailed, "", "the node is alive", "drover drain")
	on("node", "remove", "dead node").want(t, cli.ExitFailed, "", "the node is alive") // a moment ago it was
	on("node", "remove", "nobody").want(t, cli.ExitFailed, "", `"nobody"`, "no such node")
	if r := on("node", "ack", "nobody"); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "there is no node of that name") || strings.Contains(r.stderr, "worker") {
		t.Fatalf("got %+v, want that there is no such node, and no word of workers, who have nothing to acknowledge", r)
	}
	junk := dialed(t, url)
	if _, err := junk.KVCreate(t.Context(), "drover-nodes", "junk", []byte("?"), 0); err != nil {
		t.Fatal(err)
	}
	if r := on("node", "list"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "junk") {
		t.Fatalf("got %+v", r)
	}
	on("node", "remove", "junk").want(t, cli.ExitDone, "removed the record of node junk\n")
	one.end(t)
}

func TestNodesWithoutServers(t *testing.T) {
	url, _ := bare(t)
	for _, args := range []string{"node list", "node ack a", "node remove a", "drain a"} {
		command("", append(strings.Fields(args), "--nats", url, "--timeout", "30s")...).want(t, cli.ExitFailed, "", "no bucket drover-nodes", "a server makes")
	}
}

// A node has one name, in its home and in every other namespace.
func TestOneNameInAllNamespaces(t *testing.T) {
	url, o := bare(t)
	first, second := serving(t, o), serving(t, o)
	if second.Node != first.Node+"-2" {
		t.Fatalf("got nodes %q and %q", first.Node, second.Node)
	}
	command("", "namespace", "create", "other", "--partitions", "1", "--nats", url).want(t, cli.ExitDone, "namespace other has 1 partition, 1 replica, storage file, limit none\n")
	for _, name := range []string{first.Node, second.Node} {
		poll.Until(t, 20*time.Second, name+" takes part in the other namespace", func() bool {
			r := command("", "claims", "-n", "other", "--nats", url)
			return strings.Contains(r.stdout, `broker.`+strings.ReplaceAll(name, ".", "_")+" ")
		})
	}
	poll.Until(t, 20*time.Second, "the records say so", func() bool {
		return strings.Count(command("", "node", "list", "--nats", url).stdout, " default,other ") == 2
	})
}
