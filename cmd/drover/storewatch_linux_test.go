package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/server"
)

// A server whose NATS refuses all writes after one that has failed ends with an error and an exit code, and a start heals it.
func TestServerEndsWhenItsStoreBreaks(t *testing.T) { // E7
	dir := t.TempDir()
	var log strings.Builder // read once the first server has ended
	begin := func() (*exec.Cmd, server.Info) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "server", "--store", dir, "--port", "-1", "--json", "--log-level", "warn", "--profile", "dev")
		cmd.Env = append(os.Environ(), asDrover+"=1")
		cmd.Stderr = &log
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadBytes('\n')
		var r server.Info
		if err := errors.Join(err, json.Unmarshal(line, &r)); err != nil || !r.Ready {
			t.Fatalf("got ready line %q: %v", line, err)
		}
		return cmd, r
	}
	cmd, r := begin()
	command("", "start", "greet", "--id", "before", "--nats", r.URL).done(t)
	limitFiles(t, cmd.Process.Pid, 4<<10)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit := time.NewTimer(2 * time.Minute)
	defer limit.Stop()
	command("", "start", "greet", "--id", "meanwhile", "--input", `"`+strings.Repeat("x", 64<<10)+`"`, "--nats", r.URL, "--timeout", "5s") // its write fails
	select {
	case err := <-ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != cli.ExitFailed {
			t.Fatalf("the server ended with %v, want exit code %d", err, cli.ExitFailed)
		}
	case <-limit.C:
		t.Fatal("the server goes on, though nothing can be written")
	}
	if !strings.Contains(log.String(), "the store cannot be written until the server is started again") {
		t.Errorf("the log does not say why:\n%s", log.String())
	}
	cmd, r = begin()
	command("", "describe", "before", "--nats", r.URL).done(t)
	command("", "start", "greet", "--id", "after", "--nats", r.URL).done(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v after SIGTERM, want exit code 0", err)
	}
}

// limitFiles has writes of a process fail that go beyond so many bytes of a file.
func limitFiles(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := syscall.Rlimit{Cur: bytes, Max: bytes}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno != 0 {
		t.Fatalf("limit the files of process %d: %v", pid, errno)
	}
}
