package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
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

	"github.com/droverhq/drover/e2e/child"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/internal/freeport"
)

// patience is how long anything may take that has no bound of its own. The machine may be busy with other packages.
const patience = 60 * time.Second

// folder returns the test's folder for stores and logs. A failed test keeps it and says where it is.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "drover-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("stores and logs are kept in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// process is a child that may take orders.
type process struct {
	*child.Process
	t     *testing.T
	name  string
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
	return &process{Process: child.Start(t, log, cmd), t: t, name: name, stdin: stdin}
}

// alive fails the test if the process has ended.
func (p *process) alive() {
	p.t.Helper()
	select {
	case <-p.Ended:
		p.t.Fatalf("%s (pid %d) has ended: %v", p.name, p.PID(), p.Err)
	default:
	}
}

// line waits for the next line of standard output.
func (p *process) line() string {
	p.t.Helper()
	select {
	case l, ok := <-p.Lines:
		if !ok {
			p.t.Fatalf("%s prints nothing more, it has ended", p.name)
		}
		return l
	case <-time.After(patience):
		p.t.Fatalf("%s has printed nothing for %v", p.name, patience)
	}
	return ""
}

// next waits for the next line of a stranger.
func (p *process) next() stranger.Line {
	p.t.Helper()
	var l stranger.Line
	text := p.line()
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		p.t.Fatalf("%s printed %q: %v", p.name, text, err)
	}
	if l.Error != "" {
		p.t.Fatalf("%s: task %d: %s", p.name, l.N, l.Error)
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
		p.t.Fatalf("%s takes no order: %v", p.name, err)
	}
}

// asRole starts this test binary in a role. Variables are those of the environment besides the role.
func asRole(t *testing.T, dir, role string, variables map[string]string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"="+role)
	for _, k := range slices.Sorted(maps.Keys(variables)) {
		cmd.Env = append(cmd.Env, k+"="+variables[k])
	}
	return spawn(t, dir, role, cmd)
}

// result is what a command of the binary did.
type result struct {
	stdout, stderr string
	code           int
}

// runDrover runs the binary to its end.
func runDrover(t *testing.T, url string, args ...string) result {
	t.Helper()
	return runDroverWith(t, url, "", args...)
}

func runDroverWith(t *testing.T, url, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "NATS_URL="+url)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &stdout, &stderr, child.DieWithParent()
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("drover %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return port
}
