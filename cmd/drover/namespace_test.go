package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

func TestNamespaceCommands(t *testing.T) {
	log, kept := listening()
	o := memoryServer()
	o.Logger = log
	s := serving(t, o)
	on := func(stdin string, args ...string) result {
		return command(stdin, append(args, "--nats", s.URL, "--timeout", "30s")...)
	}
	on("", "namespace", "create", "shop", "--partitions", "2", "--max-bytes", "64MiB", "--compression", "s2", "--description", "of the shop").
		want(t, cli.ExitDone, "namespace shop has 2 partitions, 1 replica, storage memory, limit 64.0MiB, histories compressed by s2\n")
	for args, want := range map[string]string{
		"--max-bytes 3":         "--max-bytes is 3: use at least 16777216, NONE for no limit, or leave it out for what the namespace has\n",
		"--replicas 2":          "--replicas is 2: use 1, 3 or 5",
		"--partitions 257":      "--partitions is 257: use 1 to 256",
		"--compression lz4":     `--compression is "lz4": use none or s2`,
		"--retention soon":      "--retention: ",
		"--retention-flows 3x4": "--retention-flows: ",
	} {
		on("", append([]string{"namespace", "create", "other"}, strings.Fields(args)...)...).want(t, cli.ExitUsage, "", want)
	}
	on("", "start", "greet", "--id", "g", "-n", "shop").done(t)
	var i schemas.NamespaceInfo
	r := on("", "namespace", "create", "shop", "--max-bytes", "NONE", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &i); err != nil || i.Partitions != 2 || i.MaxBytes != 0 || i.Description != "of the shop" {
		t.Fatalf("got %+v: %v", r, err)
	}
	if r := on("", "namespace", "list"); r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != 3 || !strings.Contains(r.stdout, "NAME") {
		t.Fatalf("got %+v", r)
	}
	r = on("", "namespace", "list", "--json")
	var names []string
	for line := range strings.Lines(r.stdout) {
		if err := json.Unmarshal([]byte(line), &i); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		names = append(names, i.Name)
	}
	if !slices.Equal(names, []string{"default", "shop"}) {
		t.Fatalf("got %v", names)
	}
	r = on("", "namespace", "describe", "shop")
	for _, want := range []string{"namespace    shop\n", "description  of the shop\n", "partitions   2\n", "compression  s2\n", "  KIND ", "  history "} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Fatalf("got %+v, want %q in it", r, want)
		}
	}
	on("", "namespace", "create", "shop", "--partitions", "3").want(t, cli.ExitFailed, "", `namespace create "shop"`, "is 2, want 3", "fixed")
	on("", "namespace", "create", "shop", "--compression", "zip").want(t, cli.ExitUsage, "", `--compression is "zip"`, "use none or s2")
	on("", "namespace", "describe", "nobody").want(t, cli.ExitFailed, "", "no such namespace", "drover namespace list")
	on("", "namespace", "delete", "nobody", "--yes").want(t, cli.ExitFailed, "", `namespace delete "nobody": no such namespace`)
	on("", "namespace", "delete", "shop", "--yes").want(t, cli.ExitFailed, "", "runs are open: 1", `"g"`)
	on("show\n", "namespace", "delete", "shop").want(t, cli.ExitUsage, "", "Type its name", `"show" is not the name shop`)
	on("", "namespace", "delete", "shop", "--force").want(t, cli.ExitUsage, "", "nothing was deleted")
	on("shop\n", "namespace", "delete", "shop", "--force", "--reason", "closed").want(t, cli.ExitDone, "deleted namespace shop\n", "Type its name")
	if r := on("", "namespace", "list", "--json"); strings.Count(r.stdout, "\n") != 1 {
		t.Fatalf("got %+v, want default alone", r)
	}
	on("", "namespace", "create", "shop", "--partitions", "1").want(t, cli.ExitDone, "namespace shop has 1 partition, 1 replica, storage memory, limit none\n")
	on("", "namespace", "delete", "shop", "--yes", "--json").want(t, cli.ExitDone, `{"name":"shop","deleted":true}`+"\n")
	s.end(t)
	wantQuiet(t, kept, "shop")
}

func TestNamespaceUsage(t *testing.T) {
	for args, want := range map[string]string{
		"namespace":                               "create, list, describe or delete is missing",
		"namespace crate x":                       `no command "namespace crate"`,
		"namespace create":                        "NAME is missing",
		"namespace create a b":                    `argument "b" is too much`,
		"namespace create a --max-bytes 1GB":      `--max-bytes is "1GB": want a number of bytes, or one with KiB, MiB, GiB or TiB, such as 64MiB, or NONE`,
		"namespace create a --max-bytes -5":       `--max-bytes is "-5": want a number of bytes`,
		"namespace create a --max-bytes 9999TiB0": `--max-bytes is "9999TiB0": want a number of bytes`,
		"namespace create a --partitions x":       "--partitions",
		"namespace delete":                        "NAME is missing",
		"namespace list x":                        `argument "x" is too much`,
	} {
		command("", strings.Fields(args)...).want(t, cli.ExitUsage, "", want)
	}
	for in, want := range map[string]int64{"1": 1, "16MiB": 16 << 20, "1 GiB": 1 << 30, "2TiB": 2 << 40, "NONE": -1} {
		f := cli.SizeFlag{Unlimited: true}
		if err := f.Set(in); err != nil || f.Value != want || f.String() == "" {
			t.Errorf("%s: got %d, %v, want %d", in, f.Value, err, want)
		}
	}
	var f cli.SizeFlag
	if err := f.Set("NONE"); err == nil {
		t.Error("NONE is taken where there is no limit to take away")
	}
}

// The same workflow id, type, list and signal name in two namespaces of one server: nothing crosses.
func TestNamespacesAreIsolated(t *testing.T) {
	log, kept := listening()
	o := memoryServer()
	o.Logger = log
	s := serving(t, o)
	on := against(s.URL)
	greetings := map[string]string{"east": "good morning", "west": "good evening"}
	for ns, greeting := range greetings {
		on("namespace", "create", ns).done(t)
		defer greeter(t, s.URL, ns, greeting)()
	}
	for ns := range greetings {
		if r := on("start", "greet", "--id", "same", "--input", `"`+ns+`"`, "-n", ns); r.code != cli.ExitDone {
			t.Fatalf("%s: got %+v", ns, r)
		}
	}
	// A signal to the one leaves the other alone.
	on("signal", "same", "go", "--input", `"by the gate"`, "-n", "east").done(t)
	on("result", "same", "-n", "east").want(t, cli.ExitDone, `"\"good morning east\" \"by the gate\" 1"`+"\n")
	if r := on("describe", "same", "-n", "west"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "open") {
		t.Fatalf("got %+v, want it open", r)
	}
	conn := dialed(t, s.URL)
	if _, err := conn.PublishSync(t.Context(), "drover.west.signal.same.go", nil, []byte(`"by the sea"`)); err != nil {
		t.Fatal(err)
	}
	on("result", "same", "-n", "west").want(t, cli.ExitDone, `"\"good evening west\" \"by the sea\" 1"`+"\n")

	for ns := range greetings {
		if r := on("list", "-n", ns, "--json"); strings.Count(r.stdout, "\n") != 1 {
			t.Errorf("%s: got %+v, want its own run alone", ns, r)
		}
		if r := on("dead", "-n", ns, "--json"); r.code != cli.ExitDone || r.stdout != "" {
			t.Errorf("%s: got %+v, want no dead letters", ns, r)
		}
		if r := on("verify", "-n", ns); r.code != cli.ExitDone {
			t.Errorf("%s: got %+v", ns, r)
		}
		if r := on("history", "same", "-n", ns); strings.Contains(r.stdout, map[string]string{"east": "west", "west": "east"}[ns]) {
			t.Errorf("%s: the history knows of the other: %s", ns, r.stdout)
		}
		i, err := topology.Describe(t.Context(), conn, subject.Namespace(ns))
		if err != nil || !slices.Equal(i.Lists, []string{"words"}) {
			t.Errorf("%s: got %+v, %v, want the list words", ns, i, err)
		}
	}
	on("describe", "same").want(t, cli.ExitFailed, "", "no workflow")
	// The end of one is not the end of the other.
	on("namespace", "delete", "east", "--yes").want(t, cli.ExitDone, "deleted namespace east\n")
	on("result", "same", "-n", "west").want(t, cli.ExitDone, `"\"good evening west\" \"by the sea\" 1"`+"\n")
	wantQuiet(t, kept, "east")
}

// Namespaces come and go while servers run, by the hand of a program that tells nobody, and beside two servers.
func TestNamespacesComeAndGo(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	log, kept := listening()
	o := server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Logger: log}
	first := serving(t, o)
	second := serving(t, o)
	conn := dialed(t, nats.ClientURL())
	on := against(nats.ClientURL())
	// Storage differs from what these servers would make: they serve it all the same.
	for range 2 {
		if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "shop", Memory: true, Partitions: 2}); err != nil {
			t.Fatal(err)
		}
		poll.Until(t, 20*time.Second, "served", func() bool {
			return command("", "start", "greet", "--nats", nats.ClientURL(), "-n", "shop", "--timeout", "2s").code == cli.ExitDone
		})
		// Deleted while a run is open.
		on("namespace", "delete", "shop", "--yes", "--force").want(t, cli.ExitDone, "deleted namespace shop\n")
		if _, err := topology.Lookup(t.Context(), conn, "shop"); err == nil {
			t.Fatal("the namespace is there again")
		}
	}
	// Half of it is there: its maker died.
	for _, cut := range []int{1, 3, 6} {
		ctx, cancel := context.WithCancel(t.Context())
		made := 0
		dying := logrus.New()
		dying.SetOutput(testDiscard{})
		dying.SetLevel(logrus.DebugLevel)
		var mu sync.Mutex
		dying.AddHook(onEntry(func(e *logrus.Entry) {
			mu.Lock()
			defer mu.Unlock()
			if e.Message != "stream made" {
				return
			}
			if made++; made == cut {
				cancel()
			}
		}))
		_, _ = topology.Ensure(ctx, conn, topology.Options{Namespace: "half", Memory: true, Partitions: 2, Logger: dying})
		cancel()
		on("start", "greet", "--id", "g", "-n", "half").done(t)
		on("namespace", "delete", "half", "--yes", "--force").want(t, cli.ExitDone, "deleted namespace half\n")
	}
	second.end(t)
	first.end(t)
	wantQuiet(t, kept, "shop", "half")
}

type testDiscard struct{}

func (testDiscard) Write(b []byte) (int, error) { return len(b), nil }

type onEntry func(*logrus.Entry)

func (onEntry) Levels() []logrus.Level       { return logrus.AllLevels }
func (f onEntry) Fire(e *logrus.Entry) error { f(e); return nil }

// greeter serves a namespace: a run asks for one activity of list words, waits for the signal go, and completes with what
// both brought.
func greeter(t *testing.T, url, ns, greeting string) (stop func()) {
	t.Helper()
	c, err := drover.Connect(t.Context(), &drover.Options{URL: url, Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	deciders := c.Deciders(nil)
	deciders.Register("greet", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		status, said, reason := v.Activity("hello")
		signals := v.Signals("go")
		switch {
		case status == 0:
			return []schemas.Decision{decider.Schedule("hello", "hello", v.Input(), decider.List("words"))}, nil
		case status == decider.ActivitySucceeded && len(signals) > 0:
			return []schemas.Decision{decider.Complete(fmt.Sprintf("%s %s %d", said, signals[0], len(signals)))}, nil
		case status.Closed() && status != decider.ActivitySucceeded:
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	activities := c.Activities(&activity.Options{Lists: []string{"words"}})
	activity.Register(activities, "hello", func(_ context.Context, name string) (string, error) { return greeting + " " + name, nil })
	return working(t, c, deciders.Run, activities.Run)
}
