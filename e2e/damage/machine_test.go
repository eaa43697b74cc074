//go:build linux

package damage

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/e2e/kit"
)

const namespace = subject.Namespace("default")

// patience is how long anything may take that has no bound of its own. The machine may be busy with other packages.
const patience = 90 * time.Second

// binary is cmd/drover, built for this run.
var binary string

func TestMain(m *testing.M) { os.Exit(kit.Main(m, &binary)) }

// machine is a computer with one disk, on which a server runs, dies and is started again at the same address. Its clients
// are elsewhere: they live on.
type machine struct {
	t       *testing.T
	dir     string // logs, on a disk that nothing happens to
	store   string
	storeID string // once it was asked for
	profile string
	port    int
	url     string
	starts  int
	server  *kit.Child
	client  *drover.Client
}

// newMachine makes one. An empty store is a folder of its own.
func newMachine(t *testing.T, profile, store string) *machine {
	t.Helper()
	dir := kit.Folder(t, "drover-damage-")
	m := &machine{t: t, dir: dir, store: store, profile: profile, port: kit.FreePort(t)}
	if store == "" {
		m.store = filepath.Join(dir, "store")
	}
	m.url = fmt.Sprintf("nats://127.0.0.1:%d", m.port)
	t.Cleanup(func() { forget(t, m.stages()) }) // of the last server, which is killed
	return m
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("a mount of its own needs root")
	}
}

// start starts the server and waits until it is ready.
func (m *machine) start(flags ...string) {
	m.t.Helper()
	if line := m.tryStart(flags...); !strings.Contains(line, `"ready":true`) {
		m.server.ShowLog()
		m.t.Fatalf("got %q, want a ready line", line)
	}
	m.connect()
}

// tryStart starts the server and returns its first line, or "" if it ended without one.
func (m *machine) tryStart(flags ...string) string {
	m.t.Helper()
	m.starts++
	args := append([]string{"server", "--json", "--store", m.store, "--profile", m.profile, "--port", fmt.Sprint(m.port), "--node", "machine", "--partitions", "2"}, flags...)
	m.server = kit.Start(m.t, filepath.Join(m.dir, fmt.Sprintf("server-%d.log", m.starts)), exec.Command(binary, args...))
	select {
	case line := <-m.server.Lines:
		return line
	case <-time.After(patience):
		m.t.Fatalf("the server has printed nothing for %v", patience)
		return ""
	}
}

func (m *machine) connect() {
	m.t.Helper()
	if m.client != nil {
		return
	}
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	c, err := drover.Connect(m.t.Context(), &drover.Options{URL: m.url, Timeout: patience, Name: "load", Logger: silent})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(c.Close)
	m.client = c
}

// logs is what the server wrote since its n-th start.
func (m *machine) logs(n int) string {
	m.t.Helper()
	var all strings.Builder
	for ; n <= m.starts; n++ {
		b, err := os.ReadFile(filepath.Join(m.dir, fmt.Sprintf("server-%d.log", n)))
		if err != nil {
			m.t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}

// run runs a client command of the binary to its end.
func (m *machine) run(args ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+m.url)
	r := kit.Run(m.t, cmd)
	return r.Stdout, r.Stderr, r.Code
}

// verdict is what drover verify says.
type verdict struct {
	OK         bool `json:"ok"`
	Workflows  int  `json:"workflows"`
	Runs       int  `json:"runs"`
	Open       int  `json:"open"`
	Events     int  `json:"events"`
	Violations []struct {
		Rule       string `json:"rule"`
		WorkflowID string `json:"workflowId"`
		Run        string `json:"run"`
		Detail     string `json:"detail"`
	} `json:"violations"`
}

func (m *machine) verify(flags ...string) verdict {
	m.t.Helper()
	stdout, stderr, code := m.run(append([]string{"verify", "--json", "--timeout", "60s"}, flags...)...)
	var v verdict
	if err := json.Unmarshal([]byte(stdout), &v); err != nil {
		m.t.Fatalf("drover verify: code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if v.OK != (code == 0) {
		m.t.Fatalf("drover verify: ok is %v and the exit code %d", v.OK, code)
	}
	return v
}

// named tells of which workflow ids a verdict complains.
func (v verdict) named() map[string]bool {
	ids := map[string]bool{}
	for _, broken := range v.Violations {
		ids[broken.WorkflowID] = true
	}
	return ids
}
