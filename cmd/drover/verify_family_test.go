package main

import (
	"encoding/json"
	"testing"

	"github.com/droverhq/drover/broker/checker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/cmd/drover/check"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/server"
)

// What histories say of one another is checked over all partitions; --idle wants everything to be done; and a history that
// may have been removed is not missed.
func TestVerifyBetweenWorkflows(t *testing.T) {
	nats := embeddedtest.Serve(t, embedded.Options{Port: -1})
	s := serving(t, server.Options{External: &natsconn.Options{URL: nats.ClientURL()}, Partitions: 2})
	s.end(t)
	conn := embeddedtest.Connect(t, nats)
	ns := subject.Namespace("default")
	put := func(partition int, r schemas.Record) {
		t.Helper()
		for i := range r.Events {
			r.Events[i].ID = r.First + int64(i)
		}
		body, err := schemas.Marshal(&r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PublishSync(t.Context(), ns.History(partition, r.WorkflowID, r.Run), nil, body); err != nil {
			t.Fatal(err)
		}
	}
	begun := func(id string, more ...schemas.Attributes) schemas.Record {
		r := schemas.Record{WorkflowID: id, Run: id + "-1", First: 1}
		all := []schemas.Attributes{&schemas.WorkflowStarted{WorkflowID: id, Run: id + "-1", WorkflowType: id}, &schemas.DeciderScheduled{}}
		for _, a := range append(all, more...) {
			r.Events = append(r.Events, schemas.Event{Attributes: a})
		}
		return r
	}
	want := func(n int, rule string, flags ...string) {
		t.Helper()
		r := command("", append([]string{"verify", "--json", "--nats", nats.ClientURL()}, flags...)...)
		var v check.Verification
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
			t.Fatalf("got %+v, %v", r, err)
		}
		if len(v.Violations) != n || count(v, rule) != n || v.OK != (n == 0) {
			t.Fatalf("verify %v: got %v, want %d of rule %s", flags, v.Violations, n, rule)
		}
	}

	child := func(id string, event int64) schemas.Record {
		r := begun(id)
		a := r.Events[0].Attributes.(*schemas.WorkflowStarted)
		a.ParentWorkflowExecution, a.ParentScheduledEventID, a.Depth = &schemas.Execution{WorkflowID: "mum", Run: "mum-1"}, event, 1
		return r
	}
	put(0, child("kid", 5))
	want(1, checker.RuleParent) // its parent is not there
	put(1, begun("mum", &schemas.DeciderStarted{ScheduledEventID: 2}, &schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3},
		&schemas.ChildScheduled{WorkflowID: "kid", Run: "kid-1", WorkflowType: "kid", DeciderCompletedEventID: 4},
		&schemas.ChildScheduled{WorkflowID: "son", Run: "son-1", WorkflowType: "son", DeciderCompletedEventID: 4}))
	want(0, "")
	want(1, checker.RuleUnfinished, "--idle") // nothing is known of the other child
	put(0, child("son", 6))
	want(0, "", "--idle")
	put(1, child("cuckoo", 7))
	want(1, checker.RuleParent)

	if err := conn.PurgeSubject(t.Context(), ns.StreamHistory(1), ns.History(1, "cuckoo", "cuckoo-1")); err != nil {
		t.Fatal(err)
	}
	want(0, "", "--idle")
	if err := conn.PurgeSubject(t.Context(), ns.StreamHistory(1), ns.History(1, "mum", "mum-1")); err != nil {
		t.Fatal(err)
	}
	want(0, "", "--idle") // a parent may go before its children
}
