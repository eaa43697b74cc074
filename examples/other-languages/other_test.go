// Package otherlanguages_test runs the workers in node and python beside this file against a real server, in every pair of
// a decider and an activity worker: they speak the same protocol, so it does not matter who is written in what.
package otherlanguages_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/schemas"
)

// patience bounds everything that the test waits for. The machine may be busy with other packages.
const patience = 60 * time.Second

// language is one in which the workers are written.
type language struct {
	name    string
	dir     string
	command string
	suffix  string
}

// languages prepares the folders of both. It needs node 18, npm and python 3.9 or newer.
func languages(t *testing.T) []language {
	t.Helper()
	for _, tool := range []string{"node", "npm", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("this test runs workers in other languages and needs %s: install node (18 or newer, with npm) and python3 (3.9 or newer): %v", tool, err)
		}
	}
	all := []language{{"Node", t.TempDir(), "node", ".mjs"}, {"Python", t.TempDir(), "python3", ".py"}} // what npm installs stays out of the source tree
	for _, l := range all {
		if err := os.CopyFS(l.dir, os.DirFS(strings.ToLower(l.name))); err != nil {
			t.Fatal(err)
		}
		l.goWrong(t)
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--omit=dev", "--no-fund", "--no-audit", "--prefer-offline")
	install.Dir = all[0].dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm cannot install the NATS client that package-lock.json names: %v\n%s", err, out)
	}
	return all
}

// wrong is what the activity of a newcomer does with items of some names, and for which reason it is to fail.
var wrong = map[string][]struct{ item, code, reason string }{
	"Node": {
		{"code", `throw Object.assign(new Error("late"), { code: 23 })`, "Error"},
		{"word", `throw "busy"`, "failed"},
		{"nothing", `throw undefined`, "failed"},
		{"large", `return "\u4e2d".repeat(100_000)`, "result-too-large"},
		{"big", `return 10n`, "TypeError"},
	},
	"Python": {
		{"code", `raise Failure(404)`, "404"},
		{"details", `raise Failure("odd", object())`, "TypeError"},
		{"nan", `return float("nan")`, "ValueError"},
		{"large", `return "x" * 300_000`, "result-too-large"},
		{"big", `return object()`, "TypeError"},
	},
}

// goWrong has the language's activity do what is wrong.
func (l language) goWrong(t *testing.T) {
	t.Helper()
	file := filepath.Join(l.dir, "activity"+l.suffix)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, otherwise := `    if (item === "poison")`, `    if (item === "%s") %s;`
	if l.name == "Python" {
		first, otherwise = `    if item == "poison":`, `    if item == "%s": %s`
	}
	before, later, found := strings.Cut(string(text), first)
	if !found {
		t.Fatalf("%s has no line %q", file, first)
	}
	for _, w := range wrong[l.name] {
		before += fmt.Sprintf(otherwise, w.item, w.code) + "\n"
	}
	if err := os.WriteFile(file, []byte(before+first+later), 0o600); err != nil {
		t.Fatal(err)
	}
}

// worker starts the decider or the activity worker and returns how to stop it, which fails the test unless it ends well.
func (l language) worker(t *testing.T, url, program string) (stop func()) {
	t.Helper()
	cmd := exec.Command(l.command, program+l.suffix)
	cmd.Dir = l.dir
	cmd.Env = append(cmd.Environ(), "NATS_URL="+url, "PYTHONDONTWRITEBYTECODE=1")
	worker := kit.Start(t, filepath.Join(t.TempDir(), program+".log"), cmd)
	stop = sync.OnceFunc(func() { worker.Stop(patience) })
	t.Cleanup(stop)
	return stop
}

// order is what the workflow takes, receipt what it gives.
type (
	order   struct{ Items []string }
	receipt struct{ Charged []string }
)

func (o order) MarshalJSON() ([]byte, error) {
	return []byte(`{"items":["` + strings.Join(o.Items, `","`) + `"]}`), nil
}

func TestWorkers(t *testing.T) {
	all := languages(t)
	for _, decides := range all {
		for _, works := range all {
			t.Run(decides.name+" decides, "+works.name+" works", func(t *testing.T) { testPair(t, decides, works) })
		}
	}
}

func testPair(t *testing.T, decides, works language) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	url := drovertest.Start(t, nil).URL()
	client, err := drover.Connect(ctx, &drover.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close) // after the deciders that use it
	start := func(id string, items ...string) *drover.Run {
		t.Helper()
		run, err := client.Start(ctx, "order", order{items}, &drover.StartOptions{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	long := start("long", "salt")
	for range 4 { // more than a task holds
		if err := long.Signal(ctx, "note", strings.Repeat("x", 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	urls := "nats://127.0.0.1:1," + url // NATS_URL may name several servers, of which one is away
	decides.worker(t, urls, "decider")
	canceled := start("canceled", "tea", "cake")
	await(t, canceled, schemas.EventActivityScheduled)
	if err := canceled.Cancel(ctx, "changed my mind"); err != nil {
		t.Fatal(err)
	}
	redelivered := handedOutBefore(t, client, url)
	works.worker(t, urls, "activity")

	want := func(run *drover.Run, items ...string) {
		t.Helper()
		var got, want receipt
		if err := run.Result(ctx, &got); err != nil {
			t.Fatalf("%s: %v", run.ID, err)
		}
		for _, item := range items {
			want.Charged = append(want.Charged, item+": charged by "+works.name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s: receipt (-want +got):\n%s", run.ID, diff)
		}
	}
	for _, w := range wrong[works.name] {
		err := start(w.item, w.item).Result(ctx, nil)
		if e, ok := errors.AsType[*drover.WorkflowError](err); !ok || e.Status != schemas.StatusFailed || e.Reason != w.reason {
			t.Errorf("%s: got %v, want the failure by the reason %s", w.code, err, w.reason)
		}
	}
	want(start("order-1", "tea", "cake"), "tea", "cake")
	want(long, "salt")
	err = start("order-2", "tea", "poison", "cake").Result(ctx, nil)
	if e, ok := errors.AsType[*drover.WorkflowError](err); !ok || e.Status != schemas.StatusFailed || e.Reason != "forbidden" {
		t.Fatalf("poison: got %v, want the failure by the reason forbidden", err)
	}
	err = canceled.Result(ctx, nil)
	if e, ok := errors.AsType[*drover.WorkflowError](err); !ok || e.Status != schemas.StatusCanceled || !strings.Contains(string(e.Details), `"tea: charged by `+works.name) {
		t.Fatalf("canceled: got %v, want it canceled with what was charged", err)
	}
	var text string
	if err := redelivered.Result(ctx, &text); err != nil || text != "milk: charged by "+works.name {
		t.Fatalf("redelivered: got %q and %v, want one charge", text, err)
	}
}

// handedOutBefore starts a workflow whose one activity, an idempotent one, has been in the hands of a worker that gave it
// back. Its decider is in this process.
func handedOutBefore(t *testing.T, client *drover.Client, url string) *drover.Run {
	t.Helper()
	deciders := client.Deciders(nil)
	deciders.Register("simple", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		run, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, result, reason := run.Activity("only"); {
		case status == 0:
			return []schemas.Decision{decider.Schedule("only", "charge", "milk", decider.List("billing"), decider.Priority(5))}, nil
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(result)}, nil
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- deciders.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	run, err := client.Start(ctx, "simple", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, run, schemas.EventActivityScheduled)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// The list is made after the record that the event stands in; a worker has it opened before it pulls.
	if _, err := nc.RequestWithContext(ctx, "drover.default.api.tasklist", []byte(`{"list":"billing"}`)); err != nil {
		t.Fatal(err)
	}
	consumer, err := js.Consumer(ctx, "drover-default-tasks-billing", "workers-high")
	if err != nil {
		t.Fatal(err)
	}
	msg, err := consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		t.Fatal(err)
	}
	if err := msg.Nak(); err != nil {
		t.Fatal(err)
	}
	return run
}

// await waits until an event of a type is in the run's history.
func await(t *testing.T, run *drover.Run, typ schemas.EventType) {
	t.Helper()
	for e, err := range run.History(t.Context(), drover.HistoryOptions{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type() == typ {
			return
		}
	}
	t.Fatalf("workflow %s has ended without %s", run.ID, typ)
}
