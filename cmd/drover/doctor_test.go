package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/ops/doctor"
	"github.com/droverhq/drover/ops/permissions"
)

// diagnose runs the doctor and returns its findings.
func diagnose(t *testing.T, code int, args ...string) []doctor.Finding {
	t.Helper()
	r := command("", append([]string{"doctor", "--json"}, args...)...)
	if r.code != code {
		t.Fatalf("got exit code %d, want %d\nstdout: %s\nstderr: %s", r.code, code, r.stdout, r.stderr)
	}
	var all []doctor.Finding
	for line := range strings.Lines(r.stdout) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, f)
	}
	return all
}

// finding wants one with these.
func finding(t *testing.T, all []doctor.Finding, status doctor.Status, check string, words ...string) {
	t.Helper()
	for _, f := range all {
		hit := f.Status == status && f.Check == check
		for _, w := range words {
			hit = hit && strings.Contains(f.Found+": "+f.Change, w)
		}
		if hit {
			return
		}
	}
	t.Errorf("got %+v, want %s %s with %q", all, status, check, words)
}

func TestDoctorOnAServer(t *testing.T) {
	s := serving(t, memoryServer())
	well := diagnose(t, cli.ExitDone, "--nats", s.URL)
	for _, f := range well {
		if f.Status != doctor.OK && f.Check != "profile" && f.Check != "disk" {
			t.Errorf("got %+v, want it ok", f)
		}
	}
	finding(t, well, doctor.Warn, "profile", "dev", "--profile single")
	finding(t, well, doctor.OK, "owners", "4 partitions")
	finding(t, well, doctor.OK, "permissions", "everything that an operator does")
	r := command("", "doctor", "--nats", s.URL)
	if r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "STATUS  CHECK") || !strings.Contains(r.stdout, "warn    profile") {
		t.Fatalf("got %d %s%s", r.code, r.stdout, r.stderr)
	}

	// What somebody has broken.
	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js := conn.JetStream()
	change := func(name string, how func(*jetstream.StreamConfig)) {
		t.Helper()
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		cfg := stream.CachedInfo().Config
		how(&cfg)
		if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	change("drover-default-history-0", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour })
	change("drover-default-in-1", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true })
	if _, err := js.Publish(t.Context(), "drover.default.signal.nobody.x", nil); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "drover-default-alarms-2"); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "TAPS", Subjects: []string{"drover.default.api.*"}, Storage: jetstream.MemoryStorage}); err != nil {
		t.Fatal(err)
	}
	poll.Until(t, time.Minute, "the signal to nobody is in the dead letters", func() bool {
		stream, err := js.Stream(t.Context(), "drover-default-dead")
		return err == nil && stream.CachedInfo().State.Msgs > 0
	})
	ill := diagnose(t, cli.ExitFailed, "--nats", s.URL)
	finding(t, ill, doctor.Warn, "streams", "drover-default-history-0 (max_age)")
	finding(t, ill, doctor.Bad, "streams", "drover-default-in-1", "allow_msg_ttl")
	finding(t, ill, doctor.Bad, "streams", "missing: drover-default-alarms-2")
	finding(t, ill, doctor.Bad, "streams", "the stream TAPS", "drover.default.api.*", "take the subjects out of it")
	finding(t, ill, doctor.Warn, "dead letters", "1, the oldest of")
	finding(t, diagnose(t, cli.ExitFailed, "--nats", s.URL, "--namespace", "other"), doctor.Bad, "streams", "there is no namespace other")

	// Without claims there are no owners, and nobody makes the bucket anew unasked.
	if err := js.DeleteStream(t.Context(), "KV_drover-default-claims"); err != nil {
		t.Fatal(err)
	}
	ill = diagnose(t, cli.ExitFailed, "--nats", s.URL)
	finding(t, ill, doctor.Bad, "streams", "missing: ", "KV_drover-default-claims", "drover namespace create default")
	finding(t, ill, doctor.Bad, "owners", "the bucket drover-default-claims is missing", "see the check streams")
	command("", "claims", "--nats", s.URL).want(t, cli.ExitFailed, "", "the bucket drover-default-claims is gone", "drover namespace create default")

	// What says what the namespace is can be lost as well, and the way out must not be a namespace of another size.
	if err := js.DeleteStream(t.Context(), "drover-default-signals"); err != nil {
		t.Fatal(err)
	}
	finding(t, diagnose(t, cli.ExitFailed, "--nats", s.URL), doctor.Bad, "streams", "drover-default-signals is gone", "of 4 partitions: delete none of them", "drover namespace create default")
}

// Without a server of Drover, and as users who may see little.
func TestDoctorOnABareNATS(t *testing.T) {
	viewer, err := permissions.For(permissions.Options{Role: permissions.Viewer, Inbox: "_INBOX"})
	if err != nil {
		t.Fatal(err)
	}
	p := viewer.Permissions()
	_, url := embeddedtest.Start(t, true,
		embeddedtest.User{Name: "nobody", Subscribe: []string{"_INBOX.>"}},
		embeddedtest.User{Name: "viewer", Publish: p.Publish.Allow, Subscribe: p.Subscribe.Allow},
	)
	as := func(user string) []string {
		return []string{"--nats", url, "--user", user, "--password", embeddedtest.Password}
	}
	got := diagnose(t, cli.ExitFailed, append(as("root"), "--timeout", "1m")...)
	finding(t, got, doctor.Bad, "nodes", "no server is running")
	finding(t, got, doctor.Bad, "streams", "there is no namespace default")
	finding(t, got, doctor.Warn, "sync", "--system-context")

	conn, err := natsconn.Dial(t.Context(), natsconn.Options{URL: url, User: "root", Password: embeddedtest.Password})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	got = diagnose(t, cli.ExitFailed, as("viewer")...)
	finding(t, got, doctor.Warn, "server", "cannot be seen with this user", "$JS.API.INFO", "drover auth template")
	finding(t, got, doctor.Warn, "account", "cannot be seen with this user")
	finding(t, got, doctor.OK, "clock", "this machine")
	finding(t, got, doctor.Bad, "nodes", "no server is running")
	finding(t, got, doctor.Warn, "streams", "cannot be seen with this user", "$JS.API.STREAM.INFO.drover-default-signals")
	finding(t, got, doctor.Bad, "task lists", "nobody answers")
	finding(t, got, doctor.OK, "permissions", "what a viewer does, and not: ")
	got = diagnose(t, cli.ExitDone, as("nobody")...)
	finding(t, got, doctor.Warn, "permissions", "may not ask")
	for _, check := range []string{"server", "account", "clock", "nodes", "streams", "owners", "task lists"} {
		finding(t, got, doctor.Warn, check, "cannot be seen with this user")
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v, want it at once", took)
	}
	command("", "doctor", "--nats", "nats://127.0.0.1:1").want(t, cli.ExitNoConnection, "", "127.0.0.1:1")
	command("", "doctor", "--nats", "nats://127.0.0.1:1", "--retry-connect", "--timeout", "200ms").want(t, cli.ExitNoConnection, "", "yet, trying again")
	command("", "doctor", "--nats", url, "--user", "root", "--password", embeddedtest.Password, "--system-context", "nope").
		want(t, cli.ExitUsage, "", fmt.Sprintf("context %q", "nope"))
}
