package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// deciding serves two types: cart, which completes with its signals when one is "pay" and cancels when it is asked to, and
// chain, which continues as new until its input is 0.
func deciding(t *testing.T, url string) {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	w := c.Deciders(nil)
	w.Register("cart", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case v.CancelRequested():
			return []schemas.Decision{schemas.Decide(&schemas.CancelWorkflow{})}, nil
		case len(v.Signals("pay")) > 0:
			return []schemas.Decision{decider.Complete(len(v.Signals("add")))}, nil
		}
		return nil, nil
	}))
	w.Register("chain", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		var n int
		if err := json.Unmarshal(v.Input(), &n); err != nil {
			return nil, err
		}
		if n == 0 {
			return []schemas.Decision{decider.Complete("the end")}, nil
		}
		next, err := schemas.JSONPayload(n - 1)
		return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: next})}, err
	}))
	working(t, c, w.Run)
}

// The commands against a server with everything, as a person would use them.
func TestCommandsOnAServer(t *testing.T) {
	s := serving(t, memoryServer())
	deciding(t, s.URL)
	drover := against(s.URL)
	ok := func(args ...string) string { t.Helper(); return drover(args...).done(t) }
	has := func(got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Fatalf("got %q, want it to hold %q", got, want)
		}
	}

	// Signal with start: the first begins the run, the second finds it.
	has(ok("start", "cart", "--id", "c1", "--signal", "add", "--tag", "vip"), "started c1 run ")
	has(ok("start", "cart", "--id", "c1", "--signal", "add"), "found c1 run ")
	drover("start", "cart", "--id", "c1").want(t, cli.ExitFailed, "", `start "c1" run `, "or say with --conflict-policy what is to happen")
	has(ok("start", "cart", "--id", "c1", "--conflict-policy", "use-existing"), "found c1 run ")
	if got := ok("start", "cart", "--id", "c1", "--signal", "pay", "--wait"); got != "2\n" {
		t.Fatalf("got result %q, want 2 signals", got)
	}
	drover("start", "cart", "--id", "c1", "--reuse-policy", "reject").want(t, cli.ExitFailed, "", "c1", "or with --reuse-policy allow")
	drover("start", "cart", "--id", "c1", "--reuse-policy", "failed-only").want(t, cli.ExitFailed, "", "c1")

	// Cancel asks, terminate does not.
	ok("start", "cart", "--id", "c2")
	has(ok("cancel", "c2", "--reason", "no longer wanted"), "requested the cancellation of c2 run ")
	drover("result", "c2").want(t, cli.ExitFailed, "", "canceled")
	drover("cancel", "c2").want(t, cli.ExitFailed, "", `cancel "c2"`)
	drover("cancel", "nobody").want(t, cli.ExitFailed, "", `cancel "nobody": `)
	ok("start", "lonely", "--id", "l1")
	has(ok("terminate", "l1", "--reason", "stuck", "--details", `{"n":1}`), "terminated l1 run ")
	drover("result", "l1").want(t, cli.ExitFailed, "", "terminated: stuck", `details: {"n":1}`)
	has(ok("history", "l1"), "stuck")

	if got := ok("start", "chain", "--id", "x", "--input", "3", "--wait", "-o", "yaml"); !strings.HasSuffix(got, "status: completed\nresult: the end\n") {
		t.Fatalf("got %q", got)
	}

	if got := ok("count", "--type", "cart", "--status", "closed") + ok("count", "--status", "open") + ok("count", "--tag", "vip", "--json"); got != "2\n0\n{\"count\":1}\n" {
		t.Fatalf("got %q", got)
	}
	if got := strings.Count(ok("list", "--closed-after", "1h", "--id", "x"), "continuedAsNew"); got != 3 {
		t.Fatalf("got %d runs that continued, want 3", got)
	}
	if got := ok("tasklist", "list"); got != "" {
		t.Fatalf("got %q, want no lists", got)
	}
	work(t, s.URL)
	ok("start", "greet", "--id", "g", "--input", `"you"`, "--wait")
	// The result may be there before the task is settled.
	poll.Until(t, 10*time.Second, "nobody works", func() bool {
		return strings.Contains(ok("tasklist", "list", "-o", "yaml"), "list: words\npending: 0\nworking: 0\nworkers: 1\n")
	})
	got := completed(t, command("", "__complete", "--nats", s.URL, "describe", "c"))
	if len(got) != 2 {
		t.Fatalf("got %v, want c1 and c2", got)
	}
}

// Replays as an operator would do them: one, then all that a query finds, first dry.
func TestReplaysOnAServer(t *testing.T) {
	s := serving(t, memoryServer())
	deciding(t, s.URL)
	drover := against(s.URL)
	ok := func(args ...string) string { t.Helper(); return drover(args...).done(t) }
	for _, id := range []string{"c1", "c2", "c3"} {
		ok("start", "cart", "--id", id)
		drover("replay", id, "--from", "start").want(t, cli.ExitFailed, "", "is open", "drover terminate "+id)
		ok("terminate", id, "--reason", "stuck")
	}
	drover("replay", "c1").want(t, cli.ExitFailed, "", "from start only", "--from start")
	if got := ok("replay", "c1", "--from", "start", "--dry-run"); !strings.Contains(got, "would begin from the start") {
		t.Errorf("got %q", got)
	}
	if got := ok("replay", "c1", "--from", "start", "--reason", "it was my mistake", "--request-id", "q"); !strings.Contains(got, "of c1 as run ") {
		t.Errorf("got %q", got)
	}
	if got := ok("replay", "c1", "--from", "start", "--request-id", "q"); !strings.Contains(got, "begun by this request before") {
		t.Errorf("got %q", got)
	}
	ok("signal", "c1", "pay")
	ok("result", "c1")
	if got := ok("describe", "c1"); !strings.Contains(got, "initial run") || !strings.Contains(got, "it was my mistake") {
		t.Errorf("got %s", got)
	}
	dry := drover("replay", "--query", "type=cart status=terminated", "--from", "start", "--dry-run")
	dry.want(t, cli.ExitDone, dry.stdout, "2 would be replayed, 1 skipped") // the first run of c1 is not its latest
	all := drover("replay", "--query", "type=cart status=terminated", "--from", "start", "--reason", "all again")
	all.want(t, cli.ExitDone, all.stdout, "2 replayed, 1 skipped")
	if got := ok("count", "--type", "cart", "--status", "open"); got != "2\n" {
		t.Errorf("%s are open, want c2 and c3", got)
	}
	again := drover("replay", "--query", "type=cart status=terminated", "--from", "start")
	again.want(t, cli.ExitDone, again.stdout, "0 replayed, 3 skipped") // all three have later runs
	if got := ok("replay", "c1"); !strings.Contains(got, "nothing is left to run") {
		t.Errorf("got %q", got)
	}
}
