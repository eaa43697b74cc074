package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/check"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// A verifier that cannot fail is worth nothing: a good store passes, and each kind of damage is found and named.
func TestVerify(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	on := func(args ...string) result { return command("", append(args, "--nats", nats.ClientURL())...) }
	r := on("verify", "--json")
	if e := wantErrorDocument(t, r, schemas.CodeNotFound, ""); r.code != cli.ExitFailed || !strings.Contains(e.Message, `"default"`) {
		t.Fatalf("got %d, %+v, want an error that names the namespace", r.code, e)
	}

	s := serving(t, server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 1})
	on("verify").want(t, cli.ExitDone, "namespace default: 0 events in 0 records of 0 runs (0 open) on 1 partition: no rule is broken\n")
	stop := work(t, nats.ClientURL())
	for _, id := range []string{"g1", "g2"} {
		on("start", "greet", "--id", id, "--input", `"ox"`, "--wait").done(t)
	}
	on("start", "nobody", "--id", "open").done(t)
	stop()
	s.end(t)
	var v check.Verification
	verify := func(code int) check.Verification {
		t.Helper()
		r := on("verify", "--json")
		var v check.Verification
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || r.code != code || v.OK != (code == cli.ExitDone) {
			t.Fatalf("got %+v, %v, want code %d", r, err, code)
		}
		return v
	}
	if v = verify(cli.ExitDone); v.Runs != 3 || v.Open != 1 || v.Workflows != 3 || v.Partitions != 1 || v.Events < 20 || len(v.Violations) != 0 {
		t.Fatalf("got %+v", v)
	}

	conn := embeddedtest.Connect(t, nats)
	ns := subject.Namespace("default")
	var records []natsconn.Stored
	if err := conn.Scan(t.Context(), ns.StreamHistory(0), natsconn.ReadOptions{}, func(m natsconn.Stored) error {
		records = append(records, m)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	lastOf := func(id string) (m natsconn.Stored, r schemas.Record) {
		for _, m = range slices.Backward(records) {
			if strings.Contains(m.Subject, "."+id+".") {
				break
			}
		}
		if err := schemas.Unmarshal(m.Data, &r); err != nil {
			t.Fatal(err)
		}
		return m, r
	}
	put := func(subject string, body []byte) {
		t.Helper()
		if _, err := conn.PublishSync(t.Context(), subject, nil, body); err != nil {
			t.Fatal(err)
		}
	}
	encode := func(v any) []byte {
		b, err := schemas.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	g1, closing := lastOf("g1")
	_, open := lastOf("open")
	forged := open
	forged.First, forged.Events = open.Last()+1, nil
	for _, tt := range []struct {
		name string
		do   func()
		want string // rule
	}{
		{"a record twice", func() { put(g1.Subject, g1.Data) }, checker.RuleIDs},
		{"a forged record", func() { put(ns.History(0, "open", open.Run), encode(&forged)) }, checker.RuleChain},
		{"a record of somebody else", func() { put(ns.History(0, "g9", "r9"), encode(&closing)) }, checker.RuleRecord},
		{"garbage", func() { put(ns.History(0, "g8", "r8"), []byte("garbage")) }, checker.RuleRecord},
		{"a subject that no history has", func() { put("drover.default.history.0.a.b.c", []byte("{}")) }, checker.RuleRecord},
		{"a fence for an old claim", func() { put(ns.Fence(0), encode(&schemas.Fence{Claim: 1, Owner: "ghost"})) }, checker.RuleFence},
		{"an unreadable fence", func() { put(ns.Fence(0), []byte("x")) }, checker.RuleFence},
		{"a fence that nobody wrote", func() {
			late := forged
			late.Fence = 1 << 40
			put(ns.History(0, "open", open.Run), encode(&late))
		}, checker.RuleFence},
	} {
		before := count(v, tt.want)
		tt.do()
		if v = verify(cli.ExitFailed); count(v, tt.want) <= before {
			t.Fatalf("%s: got %v, want one more of rule %s", tt.name, v.Violations, tt.want)
		}
	}
	r = on("verify")
	if r.code != cli.ExitFailed || !strings.Contains(r.stdout, "VIOLATIONS") || !strings.Contains(r.stdout, `workflow "g1"`) ||
		!strings.Contains(r.stderr, "keep a copy of the store") {
		t.Fatalf("got %+v", r)
	}
}

func count(v check.Verification, rule string) (n int) {
	for _, b := range v.Violations {
		if b.Rule == rule {
			n++
		}
	}
	return n
}
