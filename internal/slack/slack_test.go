//go:build linux

package slack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/internal/slack"
)

// All threads of a process have the slack, those that it has and those that come later, but where somebody has chosen another one. The process of
// the tests may have cgo; so a program without it tells.
func TestWiden(t *testing.T) {
	if slack.Wide != 500*time.Microsecond {
		t.Fatalf("got %v, want what the probe's answers below have", slack.Wide)
	}
	probe := build(t)
	all := func(widen, slack string) string {
		return "widen: " + widen + "\n" + strings.Repeat("before: "+slack+" <nil>\n", 8) + strings.Repeat("later: "+slack+" <nil>\n", 8)
	}
	if got, want := run(t, probe), all("<nil>", "500000"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	// The thread that chose is the one that asks; the others are not looked at.
	got, _, _ := strings.Cut(run(t, probe, "70000"), "\n")
	if want := "widen: the timer slack of this process was set by somebody: it is 70µs"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// build builds the probe, as make build builds drover.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "probe")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// run runs it with the kernel's own slack: a child has that of the thread that begins it.
func run(t *testing.T, bin string, args ...string) string {
	t.Helper()
	runtime.LockOSThread() // for good: the thread ends with the test
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 50_000, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
