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

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/droverhq/drover/internal/slack"
)

// All threads of a process have the slack, those that it has and those that come later, but where somebody has chosen another one. The process of
// the tests may have cgo; so a program without it tells. What it begins has what it would have had.
func TestWiden(t *testing.T) {
	if slack.Wide != 500*time.Microsecond {
		t.Fatalf("got %v, want what the probe's answers below have", slack.Wide)
	}
	probe := build(t)
	want := "widen: <nil>\n" + strings.Repeat("before: 500000 <nil>\n", 8) + strings.Repeat("later: 500000 <nil>\n", 8) +
		"another program: 50000 <nil>\nafter it: 500000 <nil>\n"
	if diff := cmp.Diff(want, run(t, probe)); diff != "" {
		t.Errorf("what the probe tells (-want +got):\n%s", diff)
	}
	// The thread that chose is the one that asks; the others are not looked at.
	told := run(t, probe, "70000")
	for _, want := range []string{"widen: the timer slack of this process was set by somebody: it is 70µs\n", "another program: 70000 <nil>\n", "after it: 70000 <nil>\n"} {
		if !strings.Contains(told, want) {
			t.Errorf("got:\n%s\nwant in it: %s", told, want)
		}
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
