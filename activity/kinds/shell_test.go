//go:build unix

package kinds_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/activity/kinds"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

func TestShell(t *testing.T) {
	t.Setenv("SECRET", "not inherited")
	run := kinds.Shell(&kinds.ShellOptions{Env: []string{"GIVEN=yes"}})
	for _, tc := range []struct {
		name   string
		in     kinds.ShellInput
		want   kinds.ShellOutput
		reason string
	}{
		{name: "both outputs", in: kinds.ShellInput{Command: "echo a; echo b >&2"}, want: kinds.ShellOutput{Stdout: "a\n", Stderr: "b\n"}},
		{name: "an exit code is a result", in: kinds.ShellInput{Command: "echo a; exit 3"}, want: kinds.ShellOutput{Stdout: "a\n", ExitCode: 3}},
		{name: "a signal", in: kinds.ShellInput{Command: "kill -TERM $$"}, want: kinds.ShellOutput{ExitCode: 143}},
		{name: "no such command", in: kinds.ShellInput{Command: "exec /no/such 2>/dev/null"}, want: kinds.ShellOutput{ExitCode: 127}},
		{name: "variables", in: kinds.ShellInput{Command: `echo "$SECRET,$GIVEN,$A,$N,$L"`, Env: map[string]any{"A": "b c", "N": 5, "L": []any{1, true}}}, want: kinds.ShellOutput{Stdout: ",yes,b c,5,[1,true]\n"}},
		{name: "an empty folder", in: kinds.ShellInput{Command: `ls -A; case "$PWD" in *drover-shell-*) echo own;; esac`}, want: kinds.ShellOutput{Stdout: "own\n"}},
		{name: "no input", in: kinds.ShellInput{Command: "cat"}},
		{name: "the tail is kept", in: kinds.ShellInput{Command: "seq 1 20000; echo end", OutputMaxSize: 10}, want: kinds.ShellOutput{Stdout: "20000\nend\n"}},
		{name: "no text", in: kinds.ShellInput{Command: `printf 'a\377b'`}, want: kinds.ShellOutput{Stdout: "a\uFFFDb"}},
		{name: "what it leaves is killed", in: kinds.ShellInput{Command: "sleep 1000 >/dev/null 2>&1 & echo began"}, want: kinds.ShellOutput{Stdout: "began\n"}},
		{name: "what it leaves is no timeout", in: kinds.ShellInput{Command: "sleep 1000 & echo began", Timeout: schemas.Seconds(1)}, want: kinds.ShellOutput{Stdout: "began\n"}},
		{name: "its timeout", in: kinds.ShellInput{Command: "echo a; sleep 1000 & wait", Timeout: schemas.Seconds(1)}, reason: kinds.ReasonTimeout},
		{name: "bad input: nothing", reason: activity.ReasonBadInput},
		{name: "bad input: NUL", in: kinds.ShellInput{Command: "a\x00b"}, reason: activity.ReasonBadInput},
		{name: "bad input: size", in: kinds.ShellInput{Command: "a", OutputMaxSize: 1 << 30}, reason: activity.ReasonBadInput},
		{name: "bad input: variable", in: kinds.ShellInput{Command: "a", Env: map[string]any{"a=b": "c"}}, reason: activity.ReasonBadInput},
		{name: "bad input: long", in: kinds.ShellInput{Command: strings.Repeat("x", 200_000)}, reason: activity.ReasonBadInput},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(t.Context(), tc.in)
			if tc.reason != "" {
				if f, ok := errors.AsType[*activity.Failure](err); !ok || f.Reason != tc.reason {
					t.Errorf("got %v, want a failure with reason %s", err, tc.reason)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Whatever the end of an activity, nothing of its group goes on, and its folder is gone.
func TestShellKillsItsGroup(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	pids := filepath.Join(t.TempDir(), "pids")
	for name, command := range map[string]string{
		"while it runs":          "sleep 1000 & echo $! >%[1]s.new; mv %[1]s.new %[1]s; wait",
		"while a child has pipe": "trap '' TERM; (trap '' TERM; sleep 1000) & echo $! >%[1]s.new; mv %[1]s.new %[1]s; sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := kinds.Shell(nil)(ctx, kinds.ShellInput{Command: fmt.Sprintf(command, pids)})
				ended <- err
			}()
			pid := await(t, pids)
			cancel(activity.ErrCanceled)
			if err := <-ended; !errors.Is(err, activity.ErrCanceled) {
				t.Errorf("got %v, want ErrCanceled", err)
			}
			gone, tick := false, time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for range 60_000 {
				if gone = errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid); gone {
					break
				}
				<-tick.C
			}
			if !gone {
				t.Errorf("process %d still runs", pid)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("%v: %v is left", err, left)
			}
			if err := os.Remove(pids); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// await reads a number from a file that is about to be there.
func await(t *testing.T, file string) int {
	t.Helper()
	var n int
	poll.Until(t, time.Minute, "the command has begun", func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		if n, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
		return true
	})
	return n
}

// zombie tells whether a process is dead and only nobody has asked for its end: a container may have no process that does.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
