package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/server"
)

// The binary itself: this test binary runs as drover when it is told so.
const asDrover = "DROVER_TEST_RUN_MAIN"

// patience is how long a process may take to begin and to end.
const patience = 2 * time.Minute

// spawn starts the binary and waits until it is ready. What it says then is decoded into info, which may be nil.
func spawn(t *testing.T, info any, args ...string) *kit.Child {
	t.Helper()
	cmd := kit.Self(t, []string{asDrover + "=1"}, append(args, "--json", "--log-level", "warn")...)
	p := kit.Start(t, filepath.Join(t.TempDir(), args[0]+".log"), cmd)
	p.Ready(patience, info)
	return p
}

func TestServerProcess(t *testing.T) {
	dir := t.TempDir()
	begin := func() (*kit.Child, server.Info) {
		var r server.Info
		p := spawn(t, &r, "server", "--store", dir, "--port", "-1")
		if r.Profile != "single" || r.Store != dir {
			t.Fatalf("got ready line %+v", r)
		}
		return p, r
	}
	p, r := begin()
	command("", "start", "greet", "--id", "g", "--nats", r.URL).done(t)
	p.Stop(patience)

	p, r = begin()
	command("", "describe", "g", "--nats", r.URL).done(t)
	p.Kill()

	p, r = begin()
	if r := command("", "describe", "g", "--nats", r.URL); r.code != cli.ExitDone {
		t.Fatalf("after kill -9: got %+v", r)
	}
	command("", "verify", "--nats", r.URL).want(t, cli.ExitDone, "namespace default: 2 events in 1 record of 1 run (1 open) on 4 partitions: no rule is broken\n")
	p.Signal(syscall.SIGINT)
	p.Leaves(patience)
}
