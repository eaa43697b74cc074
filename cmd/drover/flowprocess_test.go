package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// farm gives commands on a server.
type farm struct {
	t   *testing.T
	url string
}

// newFarm starts the binary as a server.
func newFarm(t *testing.T, args ...string) *farm {
	t.Helper()
	var info server.Info
	spawn(t, &info, args...)
	return &farm{t, info.URL}
}

func (f *farm) run(args ...string) result {
	return command("", append(args, "--nats", f.url, "--timeout", "1m")...)
}

func (f *farm) ok(args ...string) string {
	f.t.Helper()
	r := f.run(args...)
	if r.code != cli.ExitDone {
		f.t.Fatalf("%v: got %d: %s%s", args, r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

func (f *farm) deploy(name, text string) {
	f.t.Helper()
	if err := writeFile(name, text); err != nil {
		f.t.Fatal(err)
	}
	f.ok("flow", "deploy", name)
}

func (f *farm) wants(want string, args ...string) {
	f.t.Helper()
	if got := f.ok(args...); got != want+"\n" {
		f.t.Errorf("%v: got %q, want %q", args, got, want)
	}
}

// A deployed flow runs from end to end with commands alone; a run keeps the version that it began with.
func TestFlowsByCommands(t *testing.T) {
	flowFiles(t, nil)
	f := newFarm(t, "dev", "--port", "-1")
	f.deploy("greet.yaml", "name: greet\nparameters: {who: {type: string, required: true}}\nsteps:\n- let greeting = Hello ${who}\n- return ${greeting}\n")
	f.wants(`"Hello Ada"`, "start", "greet", "--input", `{"who":"Ada"}`, "--wait")

	const waits = "name: waits\nsteps:\n- wait for signal go\n- return %s ${output}\n"
	f.deploy("waits.yaml", fmt.Sprintf(waits, "first"))
	first := f.versions("waits")[0]
	f.ok("start", "waits", "--id", "w-1")
	f.began("w-1")
	f.deploy("waits.yaml", fmt.Sprintf(waits, "second"))
	f.ok("start", "waits", "--id", "w-2")
	f.ok("start", "waits", "--id", "w-3", "--type-version", first[:6])
	for id, want := range map[string]string{"w-1": `"first 5"`, "w-2": `"second 5"`, "w-3": `"first 5"`} {
		f.ok("signal", id, "go", "--input", "5")
		f.wants(want, "result", id)
	}

	f.run("start", "waits", "--type-version", "abcdef", "--wait").want(t, cli.ExitFailed, "", "definition", "begin with abcdef", "drover flow show waits")
	f.run("start", "greet", "--wait").want(t, cli.ExitFailed, "", "required")
	f.run("start", "nobody", "--flow").want(t, cli.ExitFailed, "", `there is no flow "nobody"`, "drover flow deploy")
	f.run("start", "greet", "--flow", "--type-version", "abcdef").want(t, cli.ExitFailed, "", "begin with abcdef")
	f.wants(`"Hello Bob"`, "start", "greet", "--flow", "--input", `{"who":"Bob"}`, "--wait")
	f.wants(`"flow \"a.b c\""`, f.odd()...)
}

// A flow that needs more events than a history may have goes on in runs that follow each other, with its loops and its timeout.
func TestFlowOutgrowsItsHistory(t *testing.T) {
	flowFiles(t, nil)
	f := newFarm(t, "server", "--memory", "--port", "-1", "--max-events", "100")
	f.deploy("many.yaml", `
name: many
timeout: 1m
steps:
- {id: all, type: foreach, target: 1..40, target_var_name: n, concurrency: 4, steps: [no-op, "return ${n}"]}
- let rounds = 0
- {id: again, step: "let rounds = ${rounds} + 1"}
- sleep 1ms
- {step: goto again, condition: {target: "${rounds}", less-than: 40}}
- return ${rounds}, the last of the loop ${workflow.step.all.output[39]}
`)
	f.wants(`"40, the last of the loop 40"`, "start", "many", "--id", "m", "--wait")
	runs := 0
	for line := range strings.Lines(f.ok("list", "--json")) {
		var doc schemas.ExecutionInfo
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		if doc.WorkflowID == "m" && doc.Status == schemas.StatusContinuedAsNew {
			runs++
		}
	}
	if runs < 3 {
		t.Errorf("the flow had %d runs before its last one, want some", runs)
	}
}

// odd deploys a flow whose name is no subject token, and says how to run it.
func (f *farm) odd() []string {
	f.deploy("odd.yaml", "name: a.b c\nsteps:\n- return flow \"${workflow.name}\"\n")
	return []string{"start", "a.b c", "--wait"}
}

func (f *farm) versions(name string) []string {
	f.t.Helper()
	var doc struct {
		Versions []string `json:"versions"`
	}
	text := f.ok("flow", "show", name, "--json")
	if err := json.Unmarshal([]byte(text), &doc); err != nil || len(doc.Versions) == 0 {
		f.t.Fatalf("got %v and %q", err, text)
	}
	return doc.Versions
}

// began waits until the first decision of a run is made.
func (f *farm) began(id string) {
	f.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 6000 {
		if strings.Contains(f.ok("history", id, "--json"), "DeciderCompleted") {
			return
		}
		<-tick.C
	}
	f.t.Fatalf("nobody decides for %s: %s", id, f.ok("why", id))
}

// Flows have workers of their own, any number; a killed one takes no run with it.
func TestFlowWorkers(t *testing.T) {
	flowFiles(t, nil)
	var info server.Info
	serving := spawn(t, &info, "server", "--memory", "--port", "0", "--roles", "broker,timers,ops")
	if strings.HasSuffix(info.URL, ":4222") {
		t.Fatalf("got %s, want a free port for 0", info.URL)
	}
	f := &farm{t, info.URL}
	one := spawn(t, nil, "worker", "--flows", "--identity", "one", "--nats", f.url)
	f.deploy("waits.yaml", "name: waits\nsteps:\n- wait for signal go\n- sleep 10ms\n- foreach n in 1..3 do return ${n}\n")
	for i := range 4 {
		f.ok("start", "waits", "--id", fmt.Sprint("w-", i))
		f.began(fmt.Sprint("w-", i))
	}
	two := spawn(t, nil, "worker", "--flows", "--identity", "two", "--nats", f.url)
	one.Kill()
	for i := range 4 {
		f.ok("signal", fmt.Sprint("w-", i), "go")
		f.wants("[1,2,3]", "result", fmt.Sprint("w-", i))
	}
	if got := f.ok("history", "w-0", "--json"); !strings.Contains(got, `"one"`) || !strings.Contains(got, `"two"`) {
		t.Errorf("got %s, want decisions of both workers", got)
	}
	f.ok("verify")
	two.Stop(patience)
	serving.Stop(patience)
}
