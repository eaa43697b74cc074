package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
)

// A0-18: a deployed flow is replayed by commands alone, in the version that it began with.
func TestReplayAFlowByCommands(t *testing.T) {
	flowFiles(t, nil)
	f := newFarm(t, "dev", "--port", "-1")
	f.deploy("gate.yaml", `
name: gate
steps:
- log it begins
- {id: ask, step: wait for signal key, replayable: from here}
- if ${output} == "wrong" then fail message the key is wrong
- return opened by ${output}
`)
	for _, id := range []string{"g-1", "g-2"} {
		f.ok("start", "gate", "--id", id)
		f.ok("signal", id, "key", "--input", `"wrong"`)
		f.run("result", id).want(t, cli.ExitFailed, "", "the key is wrong")
	}
	f.deploy("gate.yaml", "name: gate\nsteps:\n- return never\n")
	f.run("replay", "g-1", "--from", "start").want(t, cli.ExitFailed, "", "no replay point at start")
	f.run("replay", "g-1", "--from", "somewhere").want(t, cli.ExitFailed, "", `no step "somewhere"`)
	if got := f.ok("replay", "g-1", "--from", "ask", "--dry-run"); !strings.Contains(got, "would begin at step 1\n") || !strings.Contains(got, "(ask, wait-for-signal)") {
		t.Errorf("dry run: got %q", got)
	}
	all := f.run("replay", "--query", "type=gate", "--from", "last", "--reason", "the right key was found")
	all.want(t, cli.ExitDone, all.stdout, "2 replayed")
	for _, id := range []string{"g-1", "g-2"} {
		f.ok("signal", id, "key", "--input", `"Ada"`)
		f.wants(`"opened by Ada"`, "result", id)
		if got := f.ok("describe", id); !strings.Contains(got, "initial run") || !strings.Contains(got, "the right key was found") {
			t.Errorf("describe %s:\n%s", id, got)
		}
	}
}
