// Package child starts programs for the tests below e2e: drover as it is shipped, built once for
// each test binary, and test binaries in other roles. A child that a test has started does not
// outlive it.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Build builds cmd/drover in a folder and returns the path of the binary.
func Build(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "drover")
	out, err := exec.Command("go", "build", "-o", binary, "github.com/droverhq/drover/cmd/drover").
		CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build drover: %w\n%s", err, out)
	}
	return binary, nil
}

// Main builds cmd/drover in a folder of its own, notes the path, and runs the tests. It returns the
// exit code.
func Main(m *testing.M, binary *string) int {
	dir, err := os.MkdirTemp("", "drover-e2e-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if *binary, err = Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Play is the main function of a test binary in one of its roles. SIGTERM is the planned end of a
// role. It returns the exit code.
func Play(roles map[string]func(context.Context) error, name string) int {
	role := roles[name]
	if role == nil {
		fmt.Fprintf(os.Stderr, "there is no role %q\n", name)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := role(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Process is a child. Its standard error is a file, its standard output is read line by line.
type Process struct {
	Log   string // the file
	Cmd   *exec.Cmd
	Lines chan string   // closed when it prints nothing more
	Ended chan struct{} // closed when it is gone
	Err   error         // after Ended

	t *testing.T
}

// Start starts a program. It ends with the test at the latest; if that fails, the end of its log is
// shown.
func Start(t *testing.T, log string, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{
		t:     t,
		Log:   log,
		Cmd:   cmd,
		Lines: make(chan string, 4096),
		Ended: make(chan struct{}),
	}
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stderr, cmd.SysProcAttr = f, DieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.read(out)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			p.ShowLog()
		}
	})
	return p
}

func (p *Process) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		p.Lines <- lines.Text()
	}
	close(p.Lines)
	p.Err = p.Cmd.Wait()
	close(p.Ended)
}

// PID is the number of the process.
func (p *Process) PID() int { return p.Cmd.Process.Pid }

// ShowLog prints the end of the log.
func (p *Process) ShowLog() {
	p.t.Helper()
	const most = 6 << 10
	b, err := os.ReadFile(p.Log)
	if err != nil {
		p.t.Log(err)
		return
	}
	state := "has not ended"
	select {
	case <-p.Ended:
		state = fmt.Sprintf("has ended with %v", p.Err)
	default:
	}
	p.t.Logf("process %d %s; the end of %s:\n%s", p.PID(), state, p.Log, b[max(0, len(b)-most):])
}

// Signal sends a signal; a process that has ended takes none.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("%v to process %d, whose log is %s: %v", s, p.PID(), p.Log, err)
	}
}

// Kill is kill -9: nothing runs in the process after it. It waits until the process is gone.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	for range p.Lines {
	}
	<-p.Ended
}

// Stop is SIGTERM and waits for a clean end.
func (p *Process) Stop(limit time.Duration) {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	p.Leaves(limit)
}

// Leaves waits for the clean end of a process that was told to stop.
func (p *Process) Leaves(limit time.Duration) {
	p.t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(limit):
		p.t.Fatalf("process %d has not ended %v after it was told to stop; its log is %s",
			p.PID(), limit, p.Log)
	}
	if p.Err != nil {
		p.t.Fatalf("process %d was told to stop: got %v, want exit code 0; its log is %s",
			p.PID(), p.Err, p.Log)
	}
}
