package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
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
	if r := command("", "describe", "g", "--nats", r.URL); r.code != cli.ExitDone {
		t.Fatalf("after kill -9: got %+v", r)
	}
	command("", "verify", "--nats", r.URL).want(t, cli.ExitDone, "namespace default: 2 events in 1 record of 1 run (1 open) on 4 partitions: no rule is broken\n")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("got %v after SIGINT, want exit code 0", err)
	}
}
