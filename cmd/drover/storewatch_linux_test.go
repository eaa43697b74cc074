package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/server"
)

// A server whose NATS refuses all writes after one that has failed ends with an error and an exit code, and a start heals it.
func TestServerEndsWhenItsStoreBreaks(t *testing.T) { // E7
	dir := t.TempDir()
	var r server.Info
	begin := func() *kit.Child {
		return spawn(t, &r, "server", "--store", dir, "--port", "-1", "--profile", "dev")
	}
	p := begin()
	command("", "start", "greet", "--id", "before", "--nats", r.URL).done(t)
	// Its log has to fit, what is written next does not.
	limitFiles(t, p.PID(), 32<<10)
	command("", "start", "greet", "--id", "meanwhile", "--input", `"`+strings.Repeat("x", 64<<10)+`"`, "--nats", r.URL, "--timeout", "5s")
	if code := p.Ends(patience); code != cli.ExitFailed {
		t.Fatalf("the server ended with %v, want exit code %d", p.Err, cli.ExitFailed)
	}
	log, err := os.ReadFile(p.Log)
	if err != nil || !strings.Contains(string(log), "the store cannot be written until the server is started again") {
		t.Errorf("the log does not say why:\n%s%v", log, err)
	}
	p = begin()
	command("", "describe", "before", "--nats", r.URL).done(t)
	command("", "start", "greet", "--id", "after", "--nats", r.URL).done(t)
	p.Stop(patience)
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
