package kit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a program that runs. Its standard error goes to a file, its standard output is read
// line by line.
type Process struct {
	Log   string // the file
	Cmd   *exec.Cmd
	Lines chan string   // closed when it prints nothing more
	Ended chan struct{} // closed when it is gone
	Err   error         // after Ended
}

// Begin starts a program. What it logs is appended to a file. The system kills it with this test
// binary, at the latest.
func Begin(log string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{
		Log:   log,
		Cmd:   cmd,
		Lines: make(chan string, 4096),
		Ended: make(chan struct{}),
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd.Stderr, cmd.SysProcAttr = f, DieWithParent()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
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

// Signal sends a signal; a process that has ended takes none.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.Cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%v to process %d, whose log is %s: %w", s, p.PID(), p.Log, err)
	}
	return nil
}

// Kill is kill -9: nothing runs in the process after it. It waits until the process is gone.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	for range p.Lines {
	}
	<-p.Ended
	return err
}

// Tail is the end of the log, and how the process is.
func (p *Process) Tail() string {
	const most = 6 << 10
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	state := "has not ended"
	select {
	case <-p.Ended:
		state = fmt.Sprintf("has ended with %v", p.Err)
	default:
	}
	return fmt.Sprintf(
		"process %d %s; the end of %s:\n%s",
		p.PID(),
		state,
		p.Log,
		b[max(0, len(b)-most):],
	)
}
