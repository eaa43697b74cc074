package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/e2e/stranger"
)

// patience is how long anything may take that has no bound of its own. The machine may be busy with other packages.
const patience = 60 * time.Second

// folder returns the test's folder for stores and logs.
func folder(t *testing.T) string { t.Helper(); return kit.Folder(t, "drover-e2e-") }

// process is a child that may take orders.
type process struct {
	*kit.Child
	t     *testing.T
	stdin io.Writer
}

var serial atomic.Int64

// spawn starts a program. It ends with the test at the latest.
func spawn(t *testing.T, dir, name string, cmd *exec.Cmd) *process {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, fmt.Sprintf("%03d-%s.log", serial.Add(1), name))
	return &process{Child: kit.Start(t, log, cmd), t: t, stdin: stdin}
}

// next waits for the next line of a stranger.
func (p *process) next() stranger.Line {
	p.t.Helper()
	var l stranger.Line
	text := p.Line(patience)
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		p.t.Fatalf("%s printed %q: %v", p.Name, text, err)
	}
	if l.Error != "" {
		p.t.Fatalf("%s: task %d: %s", p.Name, l.N, l.Error)
	}
	return l
}

// order tells a puppet what to do.
func (p *process) order(l stranger.Line) {
	p.t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.stdin.Write(append(b, '\n')); err != nil {
		p.t.Fatalf("%s takes no order: %v", p.Name, err)
	}
}

// asRole starts this test binary in a role. Variables are those of the environment besides the role.
func asRole(t *testing.T, dir, role string, variables map[string]string) *process {
	t.Helper()
	all := []string{envRole + "=" + role}
	for _, k := range slices.Sorted(maps.Keys(variables)) {
		all = append(all, k+"="+variables[k])
	}
	return spawn(t, dir, role, kit.Self(t, all))
}

// runDrover runs the binary to its end.
func runDrover(t *testing.T, url string, args ...string) kit.Result {
	t.Helper()
	return runDroverWith(t, url, "", args...)
}

func runDroverWith(t *testing.T, url, stdin string, args ...string) kit.Result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+url)
	cmd.Stdin = strings.NewReader(stdin)
	return kit.Run(t, cmd)
}
