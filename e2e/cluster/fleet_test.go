package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/internal/freeport"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	size = 3
	// patience is how long anything may take that has no bound of its own. The machine may be busy with other packages.
	patience = 2 * time.Minute
)

var shared fleet

// fleet is the cluster of all tests.
type fleet struct {
	dir    string
	once   sync.Once
	failed error
	net    *network
	nodes  [size + 1]*node // from 1
}

// node is one process, which comes and goes; store and addresses stay.
type node struct {
	i             int
	host          string
	client, route int
	process       *kit.Process // the last one
	starts        int
}

func (n *node) url() string { return fmt.Sprintf("nats://%s:%d", n.host, n.client) }

// begin gives a test the cluster, whole and healthy.
func begin(t *testing.T) *fleet {
	t.Helper()
	f := &shared
	f.once.Do(func() { f.failed = f.open(t) })
	if f.failed != nil {
		t.Fatalf("there is no cluster: %v", f.failed)
	}
	t.Cleanup(func() {
		if t.Failed() {
			f.showLogs(t)
		}
	})
	f.whole(t)
	return f
}

func (f *fleet) open(t *testing.T) error {
	var err error
	if f.dir, err = os.MkdirTemp("", "drover-cluster-"); err != nil {
		return err
	}
	if f.net, err = newNetwork(); err != nil {
		return err
	}
	for i := 1; i <= size; i++ {
		n := &node{i: i, host: f.net.host(i), client: 4222, route: 6222}
		if !f.net.apart() {
			ports, err := freeport.Several(2)
			if err != nil {
				return err
			}
			n.client, n.route = ports[0], ports[1]
		}
		f.nodes[i] = n
	}
	for i := size; i >= 1; i-- { // the order does not matter
		if err := f.start(i); err != nil {
			return err
		}
	}
	began := time.Now()
	for i := 1; i <= size; i++ {
		if err := f.awaitReady(i); err != nil {
			return err
		}
	}
	t.Logf("three empty nodes were ready after %v", time.Since(began).Round(time.Millisecond))
	return nil
}

// start runs a node and does not wait for it.
func (f *fleet) start(i int) (err error) {
	n := f.nodes[i]
	var routes []string
	for _, o := range f.nodes[1:] {
		routes = append(routes, fmt.Sprintf("nats://%s:%d", o.host, o.route))
	}
	n.starts++
	n.process, err = kit.Begin(
		filepath.Join(f.dir, fmt.Sprintf("n%d-%02d.log", i, n.starts)),
		f.net.in(i, binary, "server", "--json", "--store", filepath.Join(f.dir, fmt.Sprint("store", i)), "--node", fmt.Sprint("n", i),
			"--host", n.host, "--port", fmt.Sprint(n.client), "--cluster-name", "trio", "--routes", strings.Join(routes, ","),
			"--cluster-host", n.host, "--cluster-port", fmt.Sprint(n.route), "--cluster-user", "node", "--cluster-password", "secret"),
	)
	return err
}

// readyLine is what of it is looked at.
type readyLine struct {
	Ready    bool   `json:"ready"`
	Profile  string `json:"profile"`
	Cluster  string `json:"cluster"`
	Server   string `json:"server"`
	Size     int    `json:"clusterSize"`
	Replicas int    `json:"replicas"`
}

func (f *fleet) awaitReady(i int) error {
	p := f.nodes[i].process
	select {
	case line, more := <-p.Lines:
		if !more {
			return fmt.Errorf("node %d has ended, its log is %s", i, p.Log)
		}
		var r readyLine
		want := readyLine{true, "cluster", "trio", fmt.Sprint("n", i), size, 3}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r != want {
			return fmt.Errorf("node %d says %s, want %+v", i, line, want)
		}
		return nil
	case <-time.After(patience):
		return fmt.Errorf("node %d is not ready after %v, its log is %s", i, patience, p.Log)
	}
}

// kill is kill -9.
func (f *fleet) kill(t *testing.T, i int) {
	t.Helper()
	if err := f.nodes[i].process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// restart starts a node again and waits until it is ready.
func (f *fleet) restart(t *testing.T, is ...int) {
	t.Helper()
	for _, i := range is {
		if err := f.start(i); err != nil {
			t.Fatal(err)
		}
	}
	for _, i := range is {
		if err := f.awaitReady(i); err != nil {
			t.Fatal(err)
		}
	}
}

// stop is SIGTERM and waits for the clean end.
func (f *fleet) stop(t *testing.T, i int) {
	t.Helper()
	p := f.nodes[i].process
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended:
	case <-time.After(patience):
		t.Fatalf("node %d has not ended %v after SIGTERM", i, patience)
	}
	if p.Err != nil {
		t.Fatalf("node %d: got %v after SIGTERM, want exit code 0", i, p.Err)
	}
}

// close ends what is left. Stores and logs of tests that failed are kept.
func (f *fleet) close(failed bool) error {
	var all error
	for _, n := range f.nodes[1:] {
		if n != nil && n.process != nil {
			all = errors.Join(all, n.process.Kill())
		}
	}
	if f.net != nil {
		f.net.close()
	}
	if failed && f.dir != "" {
		fmt.Fprintf(os.Stderr, "stores and logs are kept in %s\n", f.dir)
		return all
	}
	return errors.Join(all, os.RemoveAll(f.dir))
}

// urls are the addresses of some nodes, or of all.
func (f *fleet) urls(of ...int) string {
	if len(of) == 0 {
		of = []int{1, 2, 3}
	}
	var all []string
	for _, i := range of {
		all = append(all, f.nodes[i].url())
	}
	return strings.Join(all, ",")
}

func (f *fleet) jetstream(t *testing.T, of ...int) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(f.urls(of...), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// streams reads the configuration and leaders of all streams; whoever waits for a leader may be refused.
func streams(ctx context.Context, js jetstream.JetStream) ([]*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list := js.ListStreams(ctx)
	var all []*jetstream.StreamInfo
	for i := range list.Info() {
		all = append(all, i)
	}
	return all, list.Err()
}

// whole waits until every stream has a leader and as many current copies as it should.
func (f *fleet) whole(t *testing.T) {
	t.Helper()
	nc, js := f.jetstream(t)
	defer nc.Close()
	began := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		all, err := streams(t.Context(), js)
		lame := ""
		for _, s := range all {
			if s.Config.Replicas != 3 {
				t.Fatalf("stream %s has %d replicas, want 3", s.Config.Name, s.Config.Replicas)
			}
			current := 0
			if s.Cluster != nil && s.Cluster.Leader != "" {
				current++
				for _, r := range s.Cluster.Replicas {
					if r.Current && !r.Offline {
						current++
					}
				}
			}
			if current < 3 {
				lame = fmt.Sprintf("%s has %d current copies", s.Config.Name, current)
			}
		}
		if err == nil && len(all) > 0 && lame == "" {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("the cluster is not whole after %v: %d streams, %s, %v", patience, len(all), lame, err)
		}
	}
}

// busiest is the node that leads the most streams.
func (f *fleet) busiest(t *testing.T) (most int, led int) {
	t.Helper()
	nc, js := f.jetstream(t)
	defer nc.Close()
	all, err := streams(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	var count [size + 1]int
	for _, s := range all {
		for i := 1; i <= size; i++ {
			if s.Cluster != nil && s.Cluster.Leader == fmt.Sprint("n", i) {
				count[i]++
			}
		}
	}
	for i := 1; i <= size; i++ {
		if count[i] >= led {
			most, led = i, count[i]
		}
	}
	return most, led
}

func others(i int) (rest []int) {
	for j := 1; j <= size; j++ {
		if j != i {
			rest = append(rest, j)
		}
	}
	return rest
}

// showLogs prints the ends of the logs of the nodes.
func (f *fleet) showLogs(t *testing.T) {
	for _, n := range f.nodes[1:] {
		if n != nil && n.process != nil {
			t.Log(n.process.Tail())
		}
	}
}
