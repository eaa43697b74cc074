package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/stranger"
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

// process is a child. Its standard error is a file, its standard output is read line by line.
type process struct {
	t     *testing.T
	name  string
	log   string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	ended chan struct{}
	err   error // after ended
}

var serial atomic.Int64

// spawn starts a program. It ends with the test at the latest.
func spawn(t *testing.T, dir, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{
		t: t, name: name, cmd: cmd, lines: make(chan string, 4096), ended: make(chan struct{}),
		log: filepath.Join(dir, fmt.Sprintf("%03d-%s.log", serial.Add(1), name)),
	}
	log, err := os.Create(p.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr, cmd.SysProcAttr = log, dieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			p.showLog()
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		p.lines <- lines.Text()
	}
	close(p.lines)
	p.err = p.cmd.Wait()
	close(p.ended)
}

// showLog prints the end of the log.
func (p *process) showLog() {
	const most = 4 << 10
	b, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Log(err)
		return
	}
	if len(b) > most {
		b = b[len(b)-most:]
	}
	p.t.Logf("%s (pid %d) ended with %v, the end of its log:\n%s", p.name, p.pid(), p.err, b)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// signal sends a signal; a process that has ended takes none.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%v to %s: %v", s, p.name, err)
	}
}

// kill is kill -9: nothing runs in the process after it. It waits until the process is gone.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	for range p.lines {
	}
	<-p.ended
}

// stop is SIGTERM and waits for a clean end.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.leaves()
}

// leaves waits for the clean end of a process that was told to stop.
func (p *process) leaves() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("%s has not ended %v after SIGTERM", p.name, patience)
	}
	if p.err != nil {
		p.t.Fatalf("%s: got %v after SIGTERM, want exit code 0", p.name, p.err)
	}
}

// alive fails the test if the process has ended.
func (p *process) alive() {
	p.t.Helper()
	select {
	case <-p.ended:
		p.t.Fatalf("%s (pid %d) has ended: %v", p.name, p.pid(), p.err)
	default:
	}
}

// line waits for the next line of standard output.
func (p *process) line() string {
	p.t.Helper()
	select {
	case l, ok := <-p.lines:
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
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &stdout, &stderr, dieWithParent()
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("drover %s: %v", strings.Join(args, " "), err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// freePort returns a loopback port that a server can be started on again after a crash. It lies below the range from
// which the kernel takes the ports of clients, so that none of them gets it meanwhile.
func freePort(t *testing.T) int {
	t.Helper()
	for range 1000 {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port of 127.0.0.1 from 10000 to 29999 is free")
	return 0
}

// eventually polls until ok reports true: for outcomes that have no long poll.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	within(t, patience, what, ok)
}

func within(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		<-tick.C
	}
}
