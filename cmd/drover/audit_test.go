package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/ops/doctor"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// A stream that somebody has deleted is nothing that an audit repairs: it says who does.
func TestAuditWithoutAStream(t *testing.T) {
	s := serving(t, memoryServer())
	ns := subject.Namespace("default")
	for _, stream := range []string{ns.StreamAlarms(0), ns.StreamHistory(1)} {
		if err := dialed(t, s.URL).JetStream().DeleteStream(t.Context(), stream); err != nil {
			t.Fatal(err)
		}
		r := command("", "audit", "--nats", s.URL, "--json")
		if e := wantErrorDocument(t, r, schemas.CodeNotFound, ""); !strings.Contains(e.Message, "a stream of namespace") || !strings.Contains(e.Hint, "drover doctor") {
			t.Errorf("without %s: got %+v, want the way out", stream, e)
		}
	}
	finding(t, diagnose(t, cli.ExitFailed, "--nats", s.URL), doctor.Bad, "streams", ns.StreamAlarms(0), ns.StreamHistory(1))
}

// A system that lacks nothing passes with notices; what is lost is repaired, and told if that is not wanted; what cannot be
// repaired makes the exit code 1.
func TestAudit(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	on := func(args ...string) result { return command("", append(args, "--nats", nats.ClientURL())...) }
	r := on("audit", "--json")
	if e := wantErrorDocument(t, r, schemas.CodeNotFound, ""); r.code != cli.ExitFailed || !strings.Contains(e.Message, `"default"`) {
		t.Fatalf("got %d, %+v, want an error that names the namespace", r.code, e)
	}
	ns := subject.Namespace("default")
	conn := embeddedtest.Connect(t, nats)

	s := serving(t, server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 2})
	on("start", "nobody", "--id", "lonely").done(t)
	look := func(code int, args ...string) (r audit.Report) {
		t.Helper()
		out := on(append([]string{"audit", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out.stdout), &r); err != nil || out.code != code {
			t.Fatalf("got %+v, %v, want code %d", out, err, code)
		}
		return r
	}
	kinds := func(r audit.Report) (all []string) {
		for _, f := range r.Findings {
			word := string(f.Kind)
			if f.Repaired {
				word += "+"
			}
			all = append(all, word)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	want := func(r audit.Report, words ...string) {
		t.Helper()
		if got := kinds(r); !slices.Equal(got, words) {
			t.Fatalf("found %v, want %v: %+v", got, words, r.Findings)
		}
	}
	poll.Until(t, time.Minute, "its alarm is armed, a second after the start", func() bool {
		last, err := conn.StreamLastSeq(t.Context(), ns.StreamAlarms(subject.Partition("lonely", 2)))
		if err != nil {
			t.Fatal(err)
		}
		return last > 0
	})
	if r := look(cli.ExitDone); r.Runs != 1 || r.Alarms != 1 {
		t.Fatalf("looked at %d runs and %d alarms, want 1 and 1: %+v", r.Runs, r.Alarms, r)
	}
	stale := `{"workflowId":"ghost","run":"r","due":"2099-01-01T00:00:00Z"}`
	if _, err := conn.PublishSync(t.Context(), ns.Alarm(subject.Partition("ghost", 2), "ghost", "r"), nil, []byte(stale)); err != nil {
		t.Fatal(err)
	}
	want(look(cli.ExitDone, "--repair=false"), "alarm-stale", "no-decider")
	out := on("audit")
	for _, part := range []string{
		`notice  alarm-stale: workflow "ghost" run r is not open and has an alarm for 2099-01-01T00:00:00Z → message `,
		`notice  no-decider: no decider of type "nobody" listens: 1 run waits for one, workflow "lonely" longest`,
		"namespace default: 1 open run, 0 tasks and 2 alarms looked at in ", ": nothing is wrong that was not repaired\n",
	} {
		if !strings.Contains(out.stdout, part) || out.code != cli.ExitDone {
			t.Fatalf("got %+v, want it to say %q", out, part)
		}
	}
	want(look(cli.ExitDone), "no-decider")

	s.end(t)
	want(look(cli.ExitFailed), "alarms-unowned", "no-master", "partition-unowned")
	out = on("audit")
	if out.code != cli.ExitFailed || !strings.Contains(out.stdout, "fault   partition-unowned: partition 0 has no owner; node ") ||
		!strings.Contains(out.stderr, "audit: 4 faults are not repaired") {
		t.Fatalf("got %+v", out)
	}
	out = on("why", "lonely", "--timeout", "1s")
	if out.code != cli.ExitDone || !strings.Contains(out.stdout, "has no owner; node ") || !strings.Contains(out.stdout, "owned it last, since 20") {
		t.Fatalf("why without a server: got %+v", out)
	}
	if out = on("why", "nobody-has-this-id", "--timeout", "1s"); out.code != cli.ExitNoConnection {
		t.Fatalf("why of what was never started, without a server: got %+v", out)
	}
}
