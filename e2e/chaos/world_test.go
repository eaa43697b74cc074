package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/internal/faultproxy"
)

const (
	namespace  = subject.Namespace("default")
	partitions = 4
	ttl        = 2 * time.Second // of the claims on partitions and alarms
	// patience is how long anything may take that has no bound of its own. The machine may be busy with other things.
	patience = 90 * time.Second
	clients  = 4
)

// The topologies.
const (
	bare     = "bare"     // one NATS server on files, roles beside it
	embedded = "embedded" // "drover server" with its own, workers beside it
	clusters = "cluster"  // three NATS servers, R3 streams, roles beside them
)

// options of a world.
type options struct {
	topology string
	seed     uint64
	actors   int // scenes that are played at a time
}

// world is a fleet under load, and those who watch it.
type world struct {
	t      *testing.T
	o      options
	dir    string
	notes  string
	taken  string // what the claimers record
	report *report
	rec    *Recorder

	servers []*member // NATS, or the embedded server
	members []*member // all
	links   []*faultproxy.Proxy
	routes  map[string][]*faultproxy.Proxy // of each NATS server: those that lead to it and away from it
	urls    []string                       // past all proxies
	ports   []int

	clients   []*client
	direct    *drover.Client
	probes    [partitions]string // a workflow id of each partition
	undeleted map[string]bool    // alarms that a replica has and its leader has not
	workflows atomic.Int64
	wg        sync.WaitGroup
}

func newWorld(t *testing.T, o options) *world {
	t.Helper()
	dir := kit.Folder(t, "drover-chaos-")
	w := &world{t: t, o: o, dir: dir, notes: filepath.Join(dir, "notes"), taken: filepath.Join(dir, "claims"), report: newReport(o.seed, o.topology), routes: map[string][]*faultproxy.Proxy{}, undeleted: map[string]bool{}}
	for _, d := range []string{w.notes, w.taken} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(filepath.Join(dir, "operations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	w.rec = NewRecorder(file)
	t.Cleanup(func() {
		w.close()
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("repeat with -chaos.seed=%d -chaos.topology=%s", o.seed, o.topology)
		}
	})
	w.build()
	return w
}

// violation records what must not be. It may be called by any goroutine.
func (w *world) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.report.violation(text)
	w.t.Errorf("violation: %s", text)
}

func (w *world) close() {
	for _, c := range w.clients {
		c.c.Close()
	}
	if w.direct != nil {
		w.direct.Close()
	}
	for _, m := range w.members {
		if m.wanted != nil {
			m.finish()
		}
	}
	w.wg.Wait()
	for _, p := range w.links {
		if err := p.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

// build starts everything and waits until it works.
func (w *world) build() {
	w.t.Helper()
	switch w.o.topology {
	case bare:
		w.bareServer()
	case embedded:
		w.embeddedServer()
	case clusters:
		w.clusterServers()
	default:
		w.t.Fatalf("there is no topology %q: use %s, %s or %s", w.o.topology, bare, embedded, clusters)
	}
	w.direct = w.connect("watcher", strings.Join(w.urls, ","))
	w.claimSpace()
	if w.o.topology != embedded {
		for _, name := range []string{"broker-1", "broker-2"} {
			w.beside(name, "broker", "broker,ops")
		}
		for _, name := range []string{"timers-1", "timers-2"} {
			w.beside(name, "timers", "timers")
		}
	}
	// Half of the runs are decided by processes that do activities too, and decide ahead; the others by those that cannot.
	for _, name := range []string{"decider-1", "worker-1", "pair-1", "pair-2"} {
		w.role(name, name[:len(name)-2], w.notes)
	}
	for n := range 3 {
		w.role(fmt.Sprintf("claimer-%d", n+1), "claimer", w.taken)
	}
	for _, m := range w.members {
		m.awaitReady(w.t)
	}
	for n := range clients {
		url, proxies := w.through()
		w.clients = append(w.clients, &client{n: n, rec: w.rec, c: w.connect(fmt.Sprintf("client-%d", n), url), proxies: proxies})
	}
	w.place()
}

func (w *world) connect(name, url string) *drover.Client {
	w.t.Helper()
	var c *drover.Client
	var err error
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		if c, err = drover.Connect(ctx, &drover.Options{URL: url, Name: name, Timeout: answerTime}); err == nil {
			return c
		}
		select {
		case <-ctx.Done():
			w.t.Fatal(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// place starts a workflow in each partition, which is asked for from time to time.
func (w *world) place() {
	w.t.Helper()
	for i, found := 0, 0; found < partitions; i++ {
		id := fmt.Sprintf("probe-%d", i)
		n := subject.Partition(id, partitions)
		if w.probes[n] != "" {
			continue
		}
		w.probes[n] = id
		found++
		for ctx, began := w.t.Context(), time.Now(); ; {
			if _, err := w.direct.Start(ctx, holdType, nil, &drover.StartOptions{ID: id, RequestID: id}); err == nil {
				break
			} else if time.Since(began) > patience {
				w.t.Fatal(err)
			}
		}
	}
}

// through makes proxies in front of every server, for one process.
func (w *world) through() (url string, proxies []*faultproxy.Proxy) {
	w.t.Helper()
	var urls []string
	for _, port := range w.ports {
		p := w.proxy(port)
		proxies = append(proxies, p)
		urls = append(urls, "nats://"+p.Addr())
	}
	return strings.Join(urls, ","), proxies
}

func (w *world) proxy(port int) *faultproxy.Proxy {
	w.t.Helper()
	p, err := faultproxy.New(net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.links = append(w.links, p)
	return p
}

func (w *world) add(m *member) *member {
	m.w = w
	w.members = append(w.members, m)
	m.begin()
	return m
}

// listen chooses the address of a server.
func (w *world) listen() (port int, url string) {
	w.t.Helper()
	port = kit.FreePort(w.t)
	url = fmt.Sprintf("nats://127.0.0.1:%d", port)
	w.ports, w.urls = append(w.ports, port), append(w.urls, url)
	return port, url
}

func (w *world) bareServer() {
	w.t.Helper()
	_, url := w.listen()
	w.servers = append(w.servers, w.add(&member{name: "nats", kind: "nats", command: w.self("nats", map[string]string{envURL: url, envDir: filepath.Join(w.dir, "store")})}))
}

func (w *world) embeddedServer() {
	w.t.Helper()
	port, _ := w.listen()
	w.servers = append(w.servers, w.add(&member{name: "server", kind: "server", command: func() *exec.Cmd {
		return exec.Command(binary, "server", "--json", "--store", filepath.Join(w.dir, "store"), "--port", fmt.Sprint(port), "--profile", "dev",
			"--claim-ttl", ttl.String(), "--partitions", fmt.Sprint(partitions), "--only-namespace")
	}}))
}

// clusterServers starts three NATS servers. Each reaches each other one through a proxy of this pair.
func (w *world) clusterServers() {
	w.t.Helper()
	const nodes = 3
	var confs [nodes]natsConf
	for i := range confs {
		w.listen()
		confs[i] = natsConf{Name: fmt.Sprintf("nats-%d", i+1), Port: kit.FreePort(w.t)}
	}
	for i := range confs {
		for j := range confs {
			if i == j {
				continue
			}
			p := w.proxy(confs[j].Port)
			confs[i].Routes = append(confs[i].Routes, p.Addr())
			for _, name := range []string{confs[i].Name, confs[j].Name} {
				w.routes[name] = append(w.routes[name], p)
			}
		}
	}
	for i, conf := range confs {
		text, err := json.Marshal(conf)
		if err != nil {
			w.t.Fatal(err)
		}
		w.servers = append(w.servers, w.add(&member{name: conf.Name, kind: "nats", command: w.self(
			"nats", map[string]string{envURL: w.urls[i], envDir: filepath.Join(w.dir, conf.Name), envConf: string(text)},
		)}))
	}
}

// self makes commands that are this test binary in a role.
func (w *world) self(role string, variables map[string]string) func() *exec.Cmd {
	w.t.Helper()
	all := []string{envRole + "=" + role}
	for k, v := range variables {
		all = append(all, k+"="+v)
	}
	cmd := kit.Self(w.t, all)
	return func() *exec.Cmd { return &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env} }
}

// beside starts roles of the binary beside the NATS servers.
func (w *world) beside(name, kind, roles string) {
	w.t.Helper()
	url, proxies := w.through()
	w.add(&member{name: name, kind: kind, proxies: proxies, command: func() *exec.Cmd {
		return exec.Command(binary, "server", "--json", "--nats", url, "--roles", roles, "--node", name, "--claim-ttl", ttl.String(),
			"--partitions", fmt.Sprint(partitions), "--replicas", fmt.Sprint(w.replicas()), "--only-namespace")
	}})
}

func (w *world) replicas() int {
	if w.o.topology == clusters {
		return len(w.ports)
	}
	return 1
}

// role starts this test binary as a worker.
func (w *world) role(name, role, dir string) {
	w.t.Helper()
	url, proxies := w.through()
	w.add(&member{name: name, kind: role, proxies: proxies, command: w.self(role, map[string]string{envURL: url, envName: name, envDir: dir})})
}

// claimSpace makes the bucket of the claimers.
func (w *world) claimSpace() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		_, err := topology.Ensure(ctx, natsconn.Of(w.direct), topology.Options{Namespace: claimSpace, Partitions: 1, Replicas: w.replicas()})
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// observer reads the claims of the namespace.
func (w *world) observer() *claims.Claims {
	w.t.Helper()
	log := logrus.New()
	log.SetLevel(logrus.PanicLevel)
	c, err := claims.Open(natsconn.Of(w.direct), namespace.BucketClaims(), claims.Options{Node: "observer", Logger: log})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}
