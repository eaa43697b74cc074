//go:build linux

package damage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
)

// A disk runs full under load. Clients are told, nothing that was acknowledged is lost, the log says why, and after a restart
// on a larger disk every run completes.
func TestDiskFull(t *testing.T) {
	dir := smallDisk(t, "14m")
	m := newMachine(t, "single", filepath.Join(dir, "store"))
	m.start()
	defer m.workers()()
	hasty, err := drover.Connect(t.Context(), &drover.Options{URL: m.url, Timeout: 3 * time.Second, Name: "hasty"})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()

	ballast(t, dir, 1<<20)
	var acked []*drover.Run
	var refused error
	l := load.Input{Steps: 1, Signals: 1, Pad: strings.Repeat("x", 32<<10)}
	for i := 0; refused == nil; i++ {
		if i > 200 {
			t.Fatal("6 MiB of starts were acknowledged on a disk with 1 MiB")
		}
		run, err := hasty.Start(t.Context(), load.Type, l, &drover.StartOptions{ID: fmt.Sprintf("full-%d", i)})
		if err == nil {
			acked = append(acked, run)
		}
		refused = err
	}
	if len(acked) == 0 {
		t.Fatalf("not one start was acknowledged: %v", refused)
	}
	t.Logf("after %d starts: %v", len(acked), refused)
	// What was on its way when the disk ran full may have to wait for its own timeout. From now on everybody is told at once.
	poll.Until(t, patience, "a start is refused with the reason", func() bool {
		_, err := hasty.Start(t.Context(), load.Type, l, &drover.StartOptions{ID: "more"})
		return errors.Is(err, drover.ErrUnavailable) && strings.Contains(err.Error(), "no space left on device")
	})
	began := time.Now()
	_, stderr, code := m.run("start", load.Type, "--id", "more")
	t.Logf("drover start: code %d after %v: %s", code, time.Since(began).Round(time.Millisecond), stderr)
	if code == 0 || !strings.Contains(stderr, "no space left on device") {
		t.Fatalf("drover start: got code %d and %s, want a refusal that says why", code, stderr)
	}
	log := m.logs(1)
	if !strings.Contains(log, "no space left on device") {
		t.Errorf("the log does not say that the disk is full:\n%s", log)
	}

	poll.Until(t, patience, "drover doctor says that a server runs, and what keeps it", func() bool {
		stdout, _, _ := m.run("doctor")
		return strings.Contains(stdout, "the store cannot be written") && !strings.Contains(stdout, "no server is running")
	})

	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	// E7: there is room again, which NATS heeds only after a start. So the process ends, for whoever watches over it to start it again.
	select {
	case <-m.server.Ended:
	case <-time.After(patience):
		t.Fatal("the server goes on, though its disk has room and it refuses everything")
	}
	if code := m.server.Cmd.ProcessState.ExitCode(); code <= 0 {
		t.Errorf("the server ended with code %d, want that of a failure", code)
	}
	if log := m.logs(1); !strings.Contains(log, "the store cannot be written until the server is started again") {
		t.Errorf("the log does not say why the server has ended:\n%s", log)
	}
	m.start()
	for _, run := range acked {
		ctx, cancel := bounded(t)
		if err := run.Signal(ctx, load.Poke, "go on"); err != nil {
			t.Fatalf("%s was acknowledged: %v", run.ID, err)
		}
		if o, err := run.Wait(ctx); err != nil || string(o.Result) != l.Want() {
			t.Fatalf("%s was acknowledged: got %+v, %v, want %s", run.ID, o, err, l.Want())
		}
		cancel()
	}
	if v := m.verify(); !v.OK {
		t.Fatalf("drover verify: %+v", v.Violations)
	}
}

// ballast fills a disk up to so many free bytes. A server that runs takes some of them meanwhile.
func ballast(t *testing.T, dir string, free uint64) {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	if have := s.Bavail * uint64(s.Bsize); have > free {
		err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, have-free), 0o600)
		if err != nil && (free > 0 || !errors.Is(err, syscall.ENOSPC)) {
			t.Fatal(err)
		}
	}
}

// The streams of a server have come to what they may take at most, three quarters of what was free on its disk as it started. Nothing can be
// written, no claim either: whoever asks is told why, and the restart that is advised heals it, though nothing was removed.
func TestStoreAtItsLimit(t *testing.T) {
	dir := smallDisk(t, "32m")
	m := newMachine(t, "single", filepath.Join(dir, "store"))
	m.start()
	js := natsconn.Of(m.client).JetStream()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ballast", Subjects: []string{"ballast"}}); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, 512<<10)
	for n := 0; ; n++ {
		if _, err := js.Publish(t.Context(), "ballast", body); err != nil {
			t.Logf("after %d messages: %v", n, err)
			break
		}
		if n > 64 {
			t.Fatal("32 MiB were acknowledged on a disk of 32 MiB")
		}
	}
	poll.Until(t, patience, "the way out is told", func() bool {
		_, stderr, code := m.run("start", load.Type, "--id", "refused")
		return code != 0 && strings.Contains(stderr, "the store cannot be written: its streams have") && strings.Contains(stderr, "start the server again")
	})
	if stdout, _, _ := m.run("doctor"); !strings.Contains(stdout, "the store cannot be written: its streams have") {
		t.Errorf("drover doctor does not tell why nothing goes on:\n%s", stdout)
	}
	m.server.Kill()
	m.start()
	if _, stderr, code := m.run("start", load.Type, "--id", "taken"); code != 0 {
		t.Fatalf("after the restart: got code %d, %s", code, stderr)
	}
}

// smallDisk is a folder on a file system of its own, as root.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatalf("a tmpfs of its own, as root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A server that is started on a full disk says so, and which disk. One that is told to stop on a disk that has become full does so soon.
func TestStartAndStopOnAFullDisk(t *testing.T) { // E7
	dir := smallDisk(t, "14m")
	m := newMachine(t, "single", filepath.Join(dir, "store"))
	for _, free := range []uint64{0, 16 << 10, 100 << 10} {
		ballast(t, dir, free)
		if line := m.tryStart(); line != "" {
			t.Fatalf("with %d bytes free: got %q, want that it does not start", free, line)
		}
		<-m.server.Ended
		if code := m.server.Cmd.ProcessState.ExitCode(); code <= 0 {
			t.Errorf("with %d bytes free: it ended with code %d, want that of a failure", free, code)
		}
		if log := m.logs(m.starts); !strings.Contains(log, "disk full: the file system of "+dir) || strings.Contains(log, "10023") {
			t.Errorf("with %d bytes free it does not say that the disk is full:\n%s", free, log)
		}
		if err := errors.Join(os.Remove(filepath.Join(dir, "ballast")), os.RemoveAll(m.store)); err != nil {
			t.Fatal(err)
		}
	}
	m.start()
	ballast(t, dir, 0)
	poll.Until(t, patience, "a start is refused", func() bool {
		_, stderr, code := m.run("start", load.Type, "--input", `"`+strings.Repeat("x", 64<<10)+`"`, "--timeout", "3s")
		return code != 0 && strings.Contains(stderr, "no space left on device")
	})
	m.server.Signal(syscall.SIGTERM)
	select {
	case <-m.server.Ended:
	case <-time.After(patience):
		t.Fatal("it has not ended after it was told to stop")
	}
}
