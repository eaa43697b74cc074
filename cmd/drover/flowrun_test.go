package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/e2e/kit"
)

var triedFlows = map[string]string{
	"hello.yaml": `parameters:
  who: {type: string, required: true}
  times: {type: integer, defaultValue: 2}
lock: hello
steps:
- log hello ${who}
- foreach n in 1..${times} do return ${n}
- activity charge on cards with who = ${who}
- sleep 10ms
- child ship with who = ${who}, n = ${times}
`,
	"ship.yaml":   "name: ship\nlock: pier\nsteps:\n- greet ${who}\n- return ${n} shipped to ${who}\n",
	"greet.yaml":  "id: greet\nshorthand: ${who}\nparameters: {who: string}\nsteps:\n- log welcome ${who}\n",
	"fails.yaml":  "steps:\n- fail message no way\n",
	"within.yaml": "steps:\n- type: workflow\n  steps:\n  - step: let a = ${b}\n    on-error: retry limit 1 backoff 1ms\n",
	"waits.yaml":  "steps:\n- wait for signal never\n",
	"shell.yaml":  "steps:\n- ssh to a ls\n",
	"broken.yaml": "steps:\n- frob\n",
	"twin.yaml":   "id: greet\nshorthand: ${who}\nparameters: {who: string}\nsteps:\n- log go away ${who}\n",
	"any.yaml":    "steps:\n- let what = charge\n- activity ${what}\n- return ${output.r}\n",
}

func TestFlowRun(t *testing.T) {
	flowFiles(t, triedFlows)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	all := []string{"hello.yaml", "--with", "greet.yaml", "--with", "greet.yaml", "--with", "ship.yaml", "--activity", `charge={"r":1}`}
	try := func(args ...string) result { return command("", append([]string{"flow", "run"}, args...)...) }
	try(append(all, "--input", "who=Ada", "--input", "times=3", "--wait")...).want(t, cli.ExitDone, "\"3 shipped to Ada\"\n",
		"info: hello Ada", "step 1.steps.0, return: done", "step 2, activity: begins", `step 2, activity: done: {"r":1}`, "step 3, sleep: done", "ship  step 1, return: done", "welcome Ada")
	r := try(append(all, "--input", `{"who": "Bob"}`, "--json", "--id", "b")...)
	if want := `"workflowId":"b",`; r.code != cli.ExitDone || r.stderr != "" || !strings.Contains(r.stdout, want) || !strings.Contains(r.stdout, `"result":"2 shipped to Bob"`) {
		t.Errorf("got %+v, want one document with %s", r, want)
	}
	try("within.yaml").want(t, cli.ExitFailed, "", "failed: child", "cause: expression: ", "there is no such value", " (at step 0.steps.0)\n")
	try("fails.yaml").want(t, cli.ExitFailed, "", "no way", "step 0, fail: failed: no way")
	try("waits.yaml", "--timeout", "1s").want(t, cli.ExitTimeout, "", "drover: ", "give it a longer --timeout")
	early := try("waits.yaml", "--timeout", "1ms")
	early.want(t, cli.ExitTimeout, "", "drover: flow run: ", "--timeout (1ms) was over", "had not begun", "give it a longer --timeout")
	if n := strings.Count(early.stderr, "\n"); n != 2 {
		t.Errorf("got %d lines, want what was waited for and the way out: %s", n, early.stderr)
	}
	try("any.yaml", "--activity", `charge={"r":7}`).want(t, cli.ExitDone, "7\n", "step 2, return: done")
	try(append(all, "--input", "times=3")...).want(t, cli.ExitFailed, "", "input who", "required")
	left, err := os.ReadDir(temp)
	if here, hereErr := os.ReadDir("."); err != nil || hereErr != nil || len(left) > 0 || len(here) != len(triedFlows) {
		t.Errorf("%v, %v: %v and %v are left over", err, hereErr, left, here)
	}
}

func TestFlowRunRefuses(t *testing.T) {
	flowFiles(t, triedFlows)
	for _, tt := range []struct {
		code int
		args string
		want []string
	}{
		{cli.ExitUsage, "", []string{"FILE is missing"}},
		{cli.ExitUsage, "nobody.yaml", []string{"nobody.yaml"}},
		{cli.ExitUsage, "fails.yaml --nats nats://x", []string{"has a server of its own"}},
		{cli.ExitUsage, "fails.yaml --creds x", []string{"--creds is given", "has a server of its own"}},
		{cli.ExitUsage, "fails.yaml --id=", []string{"--id is empty"}},
		{cli.ExitUsage, "fails.yaml --activity charge", []string{"--activity charge: want TYPE=JSON"}},
		{cli.ExitUsage, "fails.yaml --input x", []string{"want NAME=VALUE"}},
		{cli.ExitUsage, "fails.yaml --input x=1 --input x=2", []string{"gives x twice"}},
		{cli.ExitUsage, "fails.yaml --input {", []string{"is not JSON"}},
		{cli.ExitUsage, "fails.yaml --activity http=1", []string{"done already"}},
		{cli.ExitUsage, "fails.yaml --activity =1", []string{"want TYPE=JSON"}},
		{cli.ExitUsage, "fails.yaml --kinds frob", []string{`--kinds names "frob"`}},
		{cli.ExitFailed, "broken.yaml", []string{"broken.yaml:2", "nothing was run"}},
		{cli.ExitFailed, "greet.yaml", []string{"step type greet", "--with greet.yaml"}},
		{cli.ExitFailed, "hello.yaml --with greet.yaml --with ship.yaml", []string{"step 2 runs the activity charge", "--activity charge=JSON"}},
		{cli.ExitFailed, "hello.yaml --activity charge=1", []string{"starts the workflow ship", "--with FILE"}},
		{cli.ExitFailed, "hello.yaml --with greet.yaml --with twin.yaml --with ship.yaml", []string{"greet.yaml and twin.yaml both define step type greet, so nothing was run"}},
		{cli.ExitFailed, "shell.yaml", []string{"the activity ssh", "--activity ssh=JSON"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			command("", append([]string{"flow", "run"}, strings.Fields(tt.args)...)...).want(t, tt.code, "", tt.want...)
		})
	}
}

// An interrupt ends the process at once, and nothing is left.
func TestFlowRunIsInterrupted(t *testing.T) {
	dir := flowFiles(t, triedFlows)
	cmd := kit.Self(t, []string{asDrover + "=1", "TMPDIR=" + t.TempDir()}, "flow", "run", filepath.Join(dir, "waits.yaml"))
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 1)
	if _, err := out.Read(begun); err != nil { // it shows that the step begins
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != cli.ExitFailed {
		t.Errorf("got %v, want exit code %d", err, cli.ExitFailed)
	}
}
