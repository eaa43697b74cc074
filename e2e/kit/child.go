package kit

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Child is a process of a test.
type Child struct {
	*Process
	Name string // of its log, without the suffix

	t *testing.T
}

// Start starts a program. It ends with the test at the latest; if that fails, the end of its log is
// shown.
func Start(t *testing.T, log string, cmd *exec.Cmd) *Child {
	t.Helper()
	p, err := Begin(log, cmd)
	if err != nil {
		t.Fatal(err)
	}
	c := &Child{p, strings.TrimSuffix(filepath.Base(log), ".log"), t}
	t.Cleanup(func() {
		c.Kill()
		if t.Failed() {
			c.ShowLog()
		}
	})
	return c
}

// ShowLog prints the end of the log.
func (c *Child) ShowLog() {
	c.t.Helper()
	c.t.Log(c.Tail())
}

// Alive fails the test if the process has ended.
func (c *Child) Alive() {
	c.t.Helper()
	select {
	case <-c.Ended:
		c.t.Fatalf("%s (pid %d) has ended: %v", c.Name, c.PID(), c.Err)
	default:
	}
}

// Line waits for the next line of standard output.
func (c *Child) Line(limit time.Duration) string {
	c.t.Helper()
	select {
	case l, ok := <-c.Lines:
		if !ok {
			c.t.Fatalf("%s prints nothing more, it has ended", c.Name)
		}
		return l
	case <-time.After(limit):
		c.t.Fatalf("%s has printed nothing for %v", c.Name, limit)
	}
	return ""
}

// Ready waits for the line of a command with --json that tells that it works, and decodes it.
// Info may be nil.
func (c *Child) Ready(limit time.Duration, info any) {
	c.t.Helper()
	line := c.Line(limit)
	var said struct {
		Ready bool `json:"ready"`
	}
	err := json.Unmarshal([]byte(line), &said)
	if err == nil && info != nil {
		err = json.Unmarshal([]byte(line), info)
	}
	if err != nil || !said.Ready {
		c.t.Fatalf("%s: got %q and %v, want a ready line", c.Name, line, err)
	}
}

// Signal sends a signal; a process that has ended takes none.
func (c *Child) Signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Error(err)
	}
}

// Kill is kill -9: nothing runs in the process after it. It waits until the process is gone.
func (c *Child) Kill() {
	c.t.Helper()
	if err := c.Process.Kill(); err != nil {
		c.t.Error(err)
	}
}

// Stop is SIGTERM and waits for a clean end.
func (c *Child) Stop(limit time.Duration) {
	c.t.Helper()
	c.Signal(syscall.SIGTERM)
	c.Leaves(limit)
}

// Leaves waits for the clean end of a process that was told to stop.
func (c *Child) Leaves(limit time.Duration) {
	c.t.Helper()
	if c.Ends(limit); c.Err != nil {
		c.t.Fatalf(
			"%s (pid %d) was told to stop: got %v, want exit code 0; its log is %s",
			c.Name,
			c.PID(),
			c.Err,
			c.Log,
		)
	}
}

// Ends waits for the end of a process and returns its exit code.
func (c *Child) Ends(limit time.Duration) (code int) {
	c.t.Helper()
	late := time.After(limit)
	for lines := c.Lines; ; {
		select {
		case _, more := <-lines:
			if !more {
				lines = nil
			}
		case <-c.Ended:
			return c.Cmd.ProcessState.ExitCode()
		case <-late:
			c.t.Fatalf(
				"%s (pid %d) has not ended within %v; its log is %s",
				c.Name,
				c.PID(),
				limit,
				c.Log,
			)
		}
	}
}
