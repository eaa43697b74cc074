package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/server"
)

// A server that is started again serves what it finds, after a crash of the machine too.
func TestServeFindsItsNamespaces(t *testing.T) {
	log, kept := listening()
	o := server.Options{Embedded: embedded.Options{StoreDir: t.TempDir(), Port: -1, Profile: embedded.ProfileDev}, Logger: log}
	s := serving(t, o)
	for i := range 6 {
		ns := fmt.Sprint("n", i)
		command("", "namespace", "create", ns, "--partitions", "1", "--nats", s.URL).want(t, cli.ExitDone, "namespace "+ns+" has 1 partition, 1 replica, storage file, limit none\n")
		command("", "start", "greet", "--id", "g", "-n", ns, "--nats", s.URL).done(t)
	}
	s.end(t)
	s = serving(t, o)
	for i := range 6 {
		command("", "describe", "g", "-n", fmt.Sprint("n", i), "--nats", s.URL).done(t)
	}
	// It can have another home, whose partitions are its own.
	s.end(t)
	o.Namespace, o.Partitions = "n3", 1
	s = serving(t, o)
	if s.Namespace != "n3" || s.Partitions != 1 {
		t.Fatalf("got %+v", s.Info)
	}
	command("", "start", "greet", "--id", "h", "--nats", s.URL).done(t)
	s.end(t)
	wantQuiet(t, kept)
}

// A server that is to keep to its namespace serves no other, and makes none for anybody.
func TestServeOnlyItsNamespace(t *testing.T) {
	o := memoryServer()
	o.Namespace, o.OnlyNamespace = "mine", true
	s := serving(t, o)
	conn := dialed(t, s.URL)
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Namespace: "other", Memory: true, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	command("", "start", "greet", "-n", "mine", "--nats", s.URL).done(t)
	command("", "start", "greet", "-n", "other", "--nats", s.URL, "--timeout", "1500ms").want(t, cli.ExitNoConnection, "", "drover server")
	command("", "namespace", "list", "--nats", s.URL, "--timeout", "500ms").want(t, cli.ExitNoConnection, "", "the role ops")
	// The other is served once somebody does.
	s2 := serving(t, server.Options{External: &natsconn.Options{URL: s.URL}, Namespace: "other"})
	command("", "start", "greet", "-n", "other", "--nats", s.URL).done(t)
	s2.end(t)
}

// The home can be deleted too. The server lives on, and serves it again when it is made anew; or makes it when it starts.
func TestServeLosesItsHome(t *testing.T) {
	log, kept := listening()
	o := memoryServer()
	o.Logger = log
	s := serving(t, o)
	on := against(s.URL)
	for range 3 {
		on("start", "greet", "--id", "g").done(t)
		on("namespace", "delete", "default", "--yes", "--force").want(t, cli.ExitDone, "deleted namespace default\n")
		if r := on("namespace", "list", "--json"); r.code != cli.ExitDone || r.stdout != "" {
			t.Fatalf("got %+v, want no namespace", r)
		}
		on("namespace", "create", "default").done(t)
	}
	s.end(t)
	wantQuiet(t, kept, "default")
}

// What a namespace demands of its types is obeyed as soon as it is changed.
func TestServeObeysRequireTypes(t *testing.T) {
	s := serving(t, memoryServer())
	on := against(s.URL)
	on("namespace", "create", "strict", "--require-types").done(t)
	if r := on("start", "greet", "-n", "strict"); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "greet") {
		t.Fatalf("got %+v, want a refusal", r)
	}
	on("namespace", "create", "strict", "--require-types=false").done(t)
	poll.Until(t, 20*time.Second, "allowed", func() bool { return on("start", "greet", "-n", "strict").code == cli.ExitDone })
	s.end(t)
}

// Somebody deletes the streams themselves. The server complains about some of that, but not without end, and the others go on.
func TestStreamsAreDeletedUnderTheServer(t *testing.T) {
	log, kept := listening()
	o := memoryServer()
	o.Logger = log
	s := serving(t, o)
	on := against(s.URL)
	on("namespace", "create", "shop", "--partitions", "2").done(t)
	on("start", "greet", "--id", "g", "-n", "shop").done(t)
	conn := dialed(t, s.URL)
	names := conn.JetStream().StreamNames(t.Context())
	for name := range names.Name() {
		if strings.Contains(name, "drover-shop-") {
			if err := conn.JetStream().DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := names.Err(); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, 20*time.Second, "let go", func() bool {
		_, err := conn.Request(t.Context(), "drover.shop.api.list", nil, []byte("{}"))
		return errors.Is(err, natsconn.ErrNoResponders)
	})
	lines := len(kept.AllEntries())
	on("start", "greet", "--id", "g").done(t)
	s.end(t)
	if after := len(kept.AllEntries()); after > lines+10 || after > 200 {
		t.Fatalf("got %d lines, %d of them after it had let go; want at most 200 and hardly any after", after, after-lines)
	}
}

// A namespace is full: who starts a workflow gets an error, the other namespaces do not notice, and a larger limit mends it.
func TestNamespaceIsFull(t *testing.T) {
	log, _ := listening()
	o := memoryServer()
	o.Logger = log
	s := serving(t, o)
	on := func(stdin, timeout string, args ...string) result {
		return command(stdin, append(args, "--nats", s.URL, "--timeout", timeout)...)
	}
	on("", "30s", "namespace", "create", "small", "--partitions", "1", "--max-bytes", "16MiB").done(t)
	input := `"` + strings.Repeat("x", 250_000) + `"`
	started := 0
	var refused result
	for ; started < 120; started++ {
		if refused = on(input, "30s", "start", "greet", "--id", fmt.Sprint("g", started), "--input", "-", "-n", "small"); refused.code != cli.ExitDone {
			break
		}
	}
	if started < 40 || started == 120 {
		t.Fatalf("got %d starts, want the limit to be reached", started)
	}
	if refused.code != cli.ExitFailed || !strings.Contains(refused.stderr, "full") || !strings.Contains(refused.stderr, "drover namespace create small --max-bytes") {
		t.Fatalf("got %+v, want a refusal that names the limit and the way out", refused)
	}
	if r := on("", "30s", "start", "greet"); r.code != cli.ExitDone {
		t.Fatalf("got %+v, want the other namespace untouched", r)
	}
	if r := on("", "30s", "list", "-n", "small", "--json"); r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != started {
		t.Fatalf("got %+v, want the %d runs of the full namespace", r, started)
	}
	on("", "30s", "namespace", "create", "small", "--max-bytes", "64MiB").want(t, cli.ExitDone, "namespace small has 1 partition, 1 replica, storage memory, limit 64.0MiB\n")
	poll.Until(t, 20*time.Second, "it goes on with a larger limit, which is seen within seconds", func() bool {
		return on(input, "30s", "start", "greet", "--input", "-", "-n", "small").code == cli.ExitDone
	})
	if r := on("", "30s", "describe", fmt.Sprint("g", started-1), "-n", "small"); r.code != cli.ExitDone {
		t.Fatalf("got %+v, want the last run that was started", r)
	}
	on("", "30s", "namespace", "delete", "small", "--yes", "--force").want(t, cli.ExitDone, "deleted namespace small\n")
	s.end(t)
}
