package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/server"
)

// The binary itself: this test binary runs as drover when it is told so.
const asDrover = "DROVER_TEST_RUN_MAIN"

func TestServerProcess(t *testing.T) {
	dir := t.TempDir()
	begin := func() (*exec.Cmd, server.Info) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "server", "--store", dir, "--port", "-1", "--json", "--log-level", "warn")
		cmd.Env = append(os.Environ(), asDrover+"=1")
		cmd.Stderr = testWriter{t}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadBytes('\n')
		var r server.Info
		if err := errors.Join(err, json.Unmarshal(line, &r)); err != nil || !r.Ready || r.Profile != "single" || r.Store != dir {
			t.Fatalf("got ready line %q: %v", line, err)
		}
		return cmd, r
	}
	cmd, r := begin()
	command("", "start", "greet", "--id", "g", "--nats", r.URL).done(t)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v after SIGTERM, want exit code 0", err)
	}

	cmd, r = begin()
	command("", "describe", "g", "--nats", r.URL).done(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	cmd, r = begin()
	if r := command("", "describe", "g", "--nats", r.URL); r.code != exitDone {
		t.Fatalf("after kill -9: got %+v", r)
	}
	command("", "verify", "--nats", r.URL).want(t, exitDone, "namespace default: 2 events in 1 record of 1 run (1 open) on 4 partitions: no rule is broken\n")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v after SIGINT, want exit code 0", err)
	}
}

func TestSignals(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		signals := make(chan os.Signal, 4)
		ctx, hurry, done := heed(t.Context(), signals)
		defer done()
		cut := func() bool {
			synctest.Wait()
			select {
			case <-hurry:
				return true
			default:
				return false
			}
		}
		signals <- syscall.SIGTERM
		<-ctx.Done()
		if got := context.Cause(ctx); got.Error() != "signal terminated" {
			t.Fatalf("got cause %v", got)
		}
		if cut() {
			t.Fatal("the first signal cuts the stop short")
		}
		time.Sleep(doubled - 1)
		signals <- syscall.SIGTERM
		if cut() {
			t.Fatal("a doubled signal cuts the stop short")
		}
		time.Sleep(time.Nanosecond)
		signals <- syscall.SIGINT
		if !cut() {
			t.Fatal("the second signal does not cut the stop short")
		}
	})
}
