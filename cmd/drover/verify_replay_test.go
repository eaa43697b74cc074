package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/check"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// The link of a replay is checked in both directions: by its first event, and by the headers, from which the run that it repeats is
// told of it. A run that was purged is not missed.
func TestVerifyReplays(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	on := func(args ...string) result { return command("", append(args, "--nats", nats.ClientURL())...) }
	s := serving(t, server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 1})
	stop := work(t, nats.ClientURL())
	var first workflows.OutcomeDocument
	r := on("start", "greet", "--id", "g", "--input", `"ox"`, "--wait", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &first); err != nil || r.code != cli.ExitDone {
		t.Fatalf("got %+v, %v", r, err)
	}
	var replayed schemas.ReplayResponse
	r = on("replay", "g", "--from", "start", "--reason", "once more", "--json")
	if err := json.Unmarshal([]byte(r.stdout), &replayed); err != nil || r.code != cli.ExitDone || replayed.Replays != first.Run {
		t.Fatalf("got %+v, %v", r, err)
	}
	on("result", "g").want(t, cli.ExitDone, `"hello ox"`+"\n")
	if r = on("history", "g", "--run", first.Run); r.code != cli.ExitDone || !strings.HasSuffix(r.stdout, " replayed as run "+replayed.Run+"\n") {
		t.Errorf("got %+v, want the link to run %s", r, replayed.Run)
	}
	if r = on("history", "g"); r.code != cli.ExitDone || !strings.Contains(r.stdout, " replays="+first.Run+" from=start ") || !strings.Contains(r.stdout, `reason="once more"`) {
		t.Errorf("got %+v, want the link to run %s", r, first.Run)
	}
	stop()
	s.end(t)

	conn := embeddedtest.Connect(t, nats)
	ns := subject.Namespace("default")
	verify := func(code int) (v check.Verification) {
		t.Helper()
		r := on("verify", "--json")
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code != code {
			t.Fatalf("got %+v, %v, want code %d", r, err, code)
		}
		return v
	}
	verify(cli.ExitDone)
	last := func(run string) *natsconn.Stored {
		t.Helper()
		m, err := conn.LastBySubject(t.Context(), ns.StreamHistory(0), ns.History(0, "g", run))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	before, after := last(first.Run), last(replayed.Run)
	if err := conn.PurgeSubject(t.Context(), ns.StreamHistory(0), before.Subject); err != nil {
		t.Fatal(err)
	}
	if v := verify(cli.ExitDone); v.Runs != 1 {
		t.Errorf("without the run that was replayed: got %+v", v)
	}
	// Both records are there twice then, which breaks other rules; here it matters what their headers say.
	for i, tt := range []struct {
		subject string
		header  natsconn.Header
		data    []byte
	}{
		{after.Subject, natsconn.Header{schemas.StatusHeader: after.Header[schemas.StatusHeader]}, after.Data},
		{before.Subject, natsconn.Header{schemas.StatusHeader: before.Header[schemas.StatusHeader], "Drover-More": after.Header["Drover-More"]}, before.Data},
	} {
		if _, err := conn.PublishSync(t.Context(), tt.subject, tt.header, tt.data); err != nil {
			t.Fatal(err)
		}
		if v := verify(cli.ExitFailed); count(v, checker.RuleReplay) != i+1 {
			t.Errorf("damage %d: got %v, want %d of rule %s", i, v.Violations, i+1, checker.RuleReplay)
		}
	}
}
