package kit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// runTime is how long a program may take that is run to its end.
const runTime = 5 * time.Minute

// Result is what a program did.
type Result struct {
	Stdout, Stderr string
	Code           int
}

// Run runs a program to its end.
func Run(t *testing.T, cmd *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &stdout, &stderr, DieWithParent()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(runTime, func() { _ = cmd.Process.Kill() }) // it may have ended
	defer late.Stop()
	err := cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatalf("%s: %v", strings.Join(cmd.Args, " "), err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// Self is this test binary with arguments, and with variables of the form name=value besides those
// of the environment.
func Self(t *testing.T, variables []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), variables...)
	return cmd
}
