package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/internal/poll"
)

// nodes shows what "drover node list" says of each, in the order of their names.
func (w *world) nodes() []string {
	w.t.Helper()
	r := runDrover(w.t, w.url, "node", "list", "--json", "--timeout", patience.String())
	if r.Code != 0 {
		w.t.Fatalf("drover node list: got exit code %d: %s", r.Code, r.Stderr)
	}
	var all []string
	for line := range strings.Lines(r.Stdout) {
		var n struct{ Node, Status string }
		if err := json.Unmarshal([]byte(line), &n); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, n.Node+" "+n.Status)
	}
	return all
}

func (w *world) wantNodes(want ...string) {
	w.t.Helper()
	poll.Until(w.t, patience, "the nodes are "+strings.Join(want, ", "), func() bool { return cmp.Equal(w.nodes(), want) })
}

// holder is who has a claim; empty if nobody.
func (w *world) holder(key string) string {
	w.t.Helper()
	r := runDrover(w.t, w.url, "claims", "--json", "--timeout", patience.String())
	if r.Code != 0 {
		w.t.Fatalf("drover claims: got exit code %d: %s", r.Code, r.Stderr)
	}
	for line := range strings.Lines(r.Stdout) {
		var c struct {
			Key, Node string
			Expired   bool
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			w.t.Fatal(err)
		}
		if c.Key == key && !c.Expired {
			return c.Node
		}
	}
	return ""
}

// One of two servers is killed with -9 and started again under its name, a few times, while the other one keeps running. The
// name is usable at once, and if the killed one was the master, the other one is soon; S3-16 bounds that in virtual time.
func TestS3_14OneServerIsKilledAndComesBack(t *testing.T) {
	w := newWorld(t)
	w.bareNATS()
	flags := []string{"--claim-ttl", shortTTL.String(), "--partitions", "2"}
	const roles = "broker,timers,ops"
	one := w.beside("one", roles, flags...)
	w.beside("two", roles, flags...)
	w.wantNodes("one ready", "two ready")
	for round := range 2 {
		poll.Until(t, patience, "one is the master or two is", func() bool { return w.holder("master") != "" })
		was := w.holder("master")
		killed := time.Now()
		one.Kill()
		if was == "one" {
			poll.Until(t, patience, "two is the master", func() bool { return w.holder("master") == "two" })
			t.Logf("another master %v after the kill", time.Since(killed).Round(time.Millisecond))
		}
		run := w.start("nobody", fmt.Sprint("while-one-is-dead-", round), nil, drover.StartOptions{})
		w.exists(run)
		began := time.Now()
		one = w.beside("one", roles, flags...)
		t.Logf("ready %v after the start of a node that had been killed", time.Since(began).Round(time.Millisecond))
		w.wantNodes("one ready", "two ready")
	}
	one.Stop(patience)
	w.wantNodes("two ready")
}

// After kill -9 a server with --after-crash halt shows what is there and begins nothing until an operator says so.
func TestS3_02HaltAfterKill(t *testing.T) {
	w := newWorld(t)
	flags := []string{"--node", "one", "--after-crash", "halt", "--profile", "dev", "--log-level", "info"}
	s := w.embedded(flags...)
	run := w.start("nobody", "before", nil, drover.StartOptions{})
	w.exists(run)
	s.Kill()
	s = spawn(t, w.dir, "server", exec.Command(binary, append([]string{
		"server", "--json", "--store", filepath.Join(w.dir, "store"), "--port", fmt.Sprint(w.port),
	}, flags...)...))
	poll.Until(t, patience, "its own NATS server listens again", func() bool {
		return runDrover(t, w.url, "node", "list", "--timeout", "2s").Code == 0
	})
	w.wantNodes("one unexpected-shutdown")
	if r := runDrover(t, w.url, "describe", "before", "--timeout", "1s"); r.Code == 0 {
		t.Fatalf("a node that is halted answers: %s", r.Stdout)
	}
	if r := runDrover(t, w.url, "node", "ack", "one", "--reason", "seen"); r.Code != 0 {
		t.Fatalf("drover node ack: %s", r.Stderr)
	}
	s.Ready(patience, nil)
	w.exists(run)
	w.wantNodes("one ready")
	s.Stop(patience)
}

// "drover drain" ends a server as SIGTERM does: other servers take over, no call fails, its record is gone, exit code 0.
func TestS2_01DrainAServer(t *testing.T) {
	w := newWorld(t)
	w.bareNATS()
	const roles = "broker,timers,ops"
	one, two := w.beside("one", roles, "--partitions", "4"), w.beside("two", roles)
	w.wantNodes("one ready", "two ready")
	began := time.Now()
	if r := runDrover(t, w.url, "drain", "one", "--wait", "--reason", "maintenance", "--timeout", patience.String()); r.Code != 0 || r.Stdout != "one has left\n" {
		t.Fatalf("got %+v", r)
	}
	t.Logf("drained in %v", time.Since(began).Round(time.Millisecond))
	one.Leaves(patience)
	w.wantNodes("two ready")
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		w.start("nobody", id, nil, drover.StartOptions{})
	}
	two.Signal(syscall.SIGTERM)
	two.Leaves(patience)
	w.wantNodes()
}
