package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
	"github.com/droverhq/drover/server"
)

// The commands ask for what their flags say, and their errors name the flags.
func TestRecycleCommands(t *testing.T) {
	s := newService(t)
	var set, now ops.RecycleRequest
	phase := ops.RecycleDraining
	answer := func() ops.RecycleResponse {
		return ops.RecycleResponse{
			Recycle: &ops.Recycle{At: "03:30", TimeZone: "Europe/Berlin", Every: schemas.Duration(48 * time.Hour)}, Next: 1,
			Nodes:  []ops.RecycleNode{{Node: "one", Since: 1, Phase: ops.RecycleReturned}, {Node: "two", Since: 1, Phase: ops.RecycleDraining}},
			Latest: &ops.RecycleNotice{Phase: phase, Node: "two", Slot: 5, At: 6},
		}
	}
	on(s, "recycleSet", func(q ops.RecycleRequest) any {
		if set = q; q.Recycle.At == "3:30" {
			return ops.RecycleResponse{Error: schemas.Errorf(schemas.CodeInvalid, "at is %q: it is no time of day", q.Recycle.At).InField("recycle.at").WithHint("write hours and minutes")}
		}
		return answer()
	})
	on(s, "recycleShow", func(ops.RecycleRequest) any { return answer() })
	on(s, "recycleNow", func(q ops.RecycleRequest) any { now = q; return answer() })

	s.drover("", "recycle", "set", "--at", "03:30", "--zone", "Europe/Berlin", "--every", "48h", "--notice", "5m", "--stagger", "1s").
		want(t, cli.ExitDone, "every 2 days at 03:30 Europe/Berlin; next 1970-01-01 00:00:00.000Z\n")
	want := ops.Recycle{At: "03:30", TimeZone: "Europe/Berlin", Every: schemas.Duration(48 * time.Hour), Notice: schemas.Duration(5 * time.Minute), Stagger: schemas.Duration(time.Second)}
	if set.Recycle == nil || *set.Recycle != want {
		t.Errorf("asked for %+v", set.Recycle)
	}
	s.drover("", "recycle", "set", "--never").done(t)
	if set.Recycle == nil || *set.Recycle != (ops.Recycle{}) {
		t.Errorf("asked for %+v", set.Recycle)
	}
	s.drover("", "recycle", "set", "--at", "3:30").want(t, cli.ExitUsage, "", `recycleSet: --at is "3:30": it is no time of day`, "hours and minutes")
	s.drover("", "recycle", "set", "--at", "3:30", "--json").want(t, cli.ExitUsage, "", `"field":"recycle.at"`)
	s.drover("", "recycle", "set").want(t, cli.ExitUsage, "", "give either --at, such as 03:30, or --never")
	s.drover("", "recycle", "set", "--never", "--at", "03:30").want(t, cli.ExitUsage, "", "either --at")
	s.drover("", "recycle", "set", "--never", "--notice", "5m").want(t, cli.ExitUsage, "", "--notice is given, and --never too")
	s.drover("", "recycle").want(t, cli.ExitUsage, "", "set, show or now is missing")
	for _, want := range []string{"every 2 days at 03:30", "goes on: two draining\n", "NODE  SINCE", "one   1970-01-01 00:00:00.000Z  returned\n", "two   1970-01-01 00:00:00.000Z  draining\n"} {
		s.drover("", "recycle", "show").wantHolds(t, want)
	}
	s.drover("", "recycle", "now", "--notice", "10m", "--reason", "new certificates").done(t)
	if now.Notice.Std() != 10*time.Minute || now.Reason != "new certificates" {
		t.Errorf("asked for %+v", now)
	}
	s.mu.Lock()
	phase = ops.RecycleFinished
	s.mu.Unlock()
	s.drover("", "recycle", "now", "--wait").wantHolds(t, "the last one is over")
}

// pouring starts and signals without a pause until stop, which fails the test for every call that has failed, and tells how long
// the slowest took.
func pouring(t *testing.T, url string) (stop func() (calls int, slowest time.Duration)) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	var calls int
	var slowest time.Duration
	var wg sync.WaitGroup
	for i := range 4 {
		c, err := drover.Connect(t.Context(), &drover.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				run, err := c.Start(context.WithoutCancel(ctx), "nobody", n, &drover.StartOptions{ID: fmt.Sprintf("r-%d-%d", i, n)})
				if err == nil {
					err = run.Signal(context.WithoutCancel(ctx), "poke", n)
				}
				mu.Lock()
				if err != nil {
					t.Errorf("a call failed after %v: %v", time.Since(began), err)
				}
				calls, slowest = calls+2, max(slowest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { end(); wg.Wait() })
	return func() (int, time.Duration) {
		end()
		wg.Wait()
		return calls, slowest
	}
}

// recyclesShown is what drover recycle show tells.
func recyclesShown(t *testing.T, url string) ops.RecycleResponse {
	t.Helper()
	var r ops.RecycleResponse
	if err := json.Unmarshal([]byte(command("", "recycle", "show", "--json", "--nats", url).done(t)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// S2-4: a single server restarts its roles while starts and signals pour in, a few times, and no call fails. Its NATS server and its
// record stay, and what was started works on.
func TestS2_04OneServerIsRecycled(t *testing.T) {
	for name, edit := range map[string]func(*server.Options){
		"all namespaces": func(*server.Options) {}, "one namespace": func(o *server.Options) { o.OnlyNamespace = true },
	} {
		t.Run(name, func(t *testing.T) {
			o := memoryServer()
			edit(&o)
			s := serving(t, o)
			on := against(s.URL)
			rest := work(t, s.URL)
			stop := pouring(t, s.URL)
			for range 3 {
				before := recyclesShown(t, s.URL).Nodes[0].Since
				on("recycle", "now", "--wait", "--timeout", "1m").done(t)
				if after := recyclesShown(t, s.URL).Nodes[0]; after.Since <= before || after.Node != s.Node {
					t.Errorf("got %+v, want roles that began after %v", after, before.Time())
				}
			}
			calls, slowest := stop()
			t.Logf("%d calls, the slowest pair took %v", calls, slowest)
			on("start", "greet", "--id", "g", "--input", `"ox"`, "--wait").want(t, cli.ExitDone, "\"hello ox\"\n", "started g")
			on("verify").done(t)
			if r := on("node", "list", "--json"); !strings.Contains(r.stdout, `"status":"ready"`) {
				t.Errorf("got %s, want a node that is ready", r.stdout)
			}
			rest()
			s.end(t)
		})
	}
}

// S2-3, S2-4: an always-on workflow is asked to continue as new, on its server, before that restarts its roles. There is one run of it, before
// and after.
func TestS2_03AlwaysOnGoesThroughARecycle(t *testing.T) {
	s := serving(t, memoryServer())
	c, err := drover.Connect(t.Context(), &drover.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	w, handled := c.Deciders(nil), make(chan struct{}, 100)
	w.Register("import", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		if len(v.Signals("file")) > 0 {
			handled <- struct{}{}
		}
		if task.SuggestContinueAsNew() {
			return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{})}, nil
		}
		return nil, nil
	}))
	stop := working(t, c, w.Run)
	on := against(s.URL)
	on("always-on", "add", "import", "--type", "import", "--continue-after", "1h").done(t)
	run := c.Run("import", "")
	var first *schemas.DescribeResponse
	poll.Until(t, time.Minute, "the always-on workflow runs", func() bool {
		first, err = run.Describe(t.Context())
		return err == nil
	})
	if err := run.Signal(t.Context(), "file", nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-handled:
	case <-time.After(time.Minute):
		t.Fatal("nobody decides about its signal")
	}
	poll.Until(t, time.Minute, "the decision about its signal is stored", func() bool {
		d, err := run.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return d.Decision == ""
	})
	on("recycle", "now", "--wait", "--timeout", "1m").done(t)
	var next *schemas.DescribeResponse
	poll.Until(t, time.Minute, "it has continued as new", func() bool {
		if next, err = run.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		return next.Execution.Run != first.Execution.Run
	})
	if next.Execution.StartMode != schemas.ModeContinuation {
		t.Errorf("its start mode is %q", next.Execution.StartMode)
	}
	if got := on("count", "--type", "import", "--status", "open").done(t); got != "1\n" {
		t.Errorf("got %s open runs, want one", got)
	}
	stop()
	s.end(t)
}

// A namespace that is not the home is served again too.
func TestRecycleServesOtherNamespaces(t *testing.T) {
	s := serving(t, memoryServer())
	on := against(s.URL)
	on("namespace", "create", "shop", "--partitions", "1").done(t)
	on("start", "nobody", "--id", "a", "-n", "shop").done(t)
	on("recycle", "set", "--at", "03:30", "-n", "shop").want(t, cli.ExitFailed, "", "the home of no server")
	on("recycle", "now", "--wait", "--timeout", "1m").done(t)
	on("start", "nobody", "--id", "b", "-n", "shop").done(t)
	on("describe", "a", "-n", "shop").done(t)
	s.end(t)
}

// With --recycle-exit the process ends as by a planned stop, with an exit code of its own.
func TestRecycleExit(t *testing.T) {
	url, o := bare(t)
	o.Node = "one"
	other := serving(t, o)
	o.Node, o.RecycleExit = "two", true
	s := serving(t, o)
	on := against(url)
	on("recycle", "set", "--at", time.Now().UTC().Add(12*time.Hour).Format("15:04"), "--stagger", "1s").done(t) // not within its notice
	on("recycle", "now").done(t)
	select {
	case <-s.ended:
	case <-time.After(time.Minute):
		t.Fatal("it has not ended")
	}
	if !errors.Is(s.err, server.ErrRecycled) || cli.ExitCode(s.err) != 75 {
		t.Fatalf("got %v, want %v", s.err, server.ErrRecycled)
	}
	if r := on("node", "list", "--json"); strings.Contains(r.stdout, `"two"`) {
		t.Fatalf("got %s, want no record of a node that has left", r.stdout)
	}
	serving(t, o)
	poll.Until(t, time.Minute, "both nodes had their turn", func() bool {
		r := recyclesShown(t, url)
		return r.Latest.Phase == ops.RecycleFinished && len(r.Nodes) == 2
	})
	other.end(t)
}

// A node that is told to stop in its turn stops, and its record goes.
func TestStopInARecycle(t *testing.T) {
	url, o := bare(t)
	o.Node = "one"
	s := serving(t, o)
	on := against(url)
	on("recycle", "now").done(t)
	on("drain", "one", "--wait", "--timeout", "1m").done(t)
	<-s.ended
	if s.err != nil {
		t.Fatalf("got %v, want a clean end", s.err)
	}
	var all []nodes.Info
	all, err := registry(t, dialed(t, url)).List(t.Context())
	if err != nil || len(all) != 0 {
		t.Fatalf("got %+v, %v, want no record", all, err)
	}
}
