package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/schemas"
)

// audited asks the owner of partition 0 for workflows.
func (f *fleet) audited(ids ...string) schemas.AuditResponse {
	f.t.Helper()
	body, err := json.Marshal(schemas.AuditRequest{Workflows: ids})
	if err != nil {
		f.t.Fatal(err)
	}
	var a schemas.AuditResponse
	var raw []byte
	for tries := 0; raw == nil && tries < 10; tries++ { // the API may be up before the partition has an owner
		raw = f.tryRequest(ns.API("audit"), string(body))
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		f.t.Fatal(err)
	}
	return a
}

// The owner says the same of a run whether it has it in memory or must read it, and keeps none that it read.
func TestAuditAnswers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(d *decisionTask) string {
			if !d.has("WorkflowStarted") {
				return "[]"
			}
			return "[" + scheduleActivity("a", "") + "," + scheduleActivity("b", `,"startDelay":600`) +
				`,{"type":"ScheduleTimer","attributes":{"timerId":"tea","startToFireTimeout":7200}}` +
				`,{"type":"StartChild","attributes":{"workflowId":"kid","workflowType":"idle"}}]`
		})
		f.decider("idle", func(*decisionTask) string { return "[]" })
		f.decider("done", func(*decisionTask) string { return complete })
		first := f.node("a", nil)
		f.start(startO)
		f.start(`{"workflowId":"d","type":"done","run":"d1"}`)
		k := f.pull()
		k.report("started", `,"identity":"worker 1"`)
		f.await("o", schemas.EventActivityStarted)
		time.Sleep(10 * time.Second)
		inMemory := f.audited("o", "kid", "d", "nobody")
		first.stop()
		f.node("b", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.api("list", "{}")
		read := f.audited("o", "kid", "d", "nobody")
		if inMemory.Owner != "a" || read.Owner != "b" || inMemory.Recovering || read.Recovering {
			t.Fatalf("owners %+v and %+v", inMemory, read)
		}
		// An owner that wrote a record itself counts from its own clock, and half a millisecond on the safe side.
		near := cmp.Comparer(func(a, b schemas.Timestamp) bool { return a.Sub(b).Abs() <= time.Millisecond })
		if diff := cmp.Diff(inMemory.Runs, read.Runs, near); diff != "" {
			t.Fatalf("from memory (-) and from the history (+): %s", diff)
		}
		o, kid, d, nobody := read.Runs[0], read.Runs[1], read.Runs[2], read.Runs[3]
		if o.Status != "open" || o.Busy || o.Timers != 1 || len(o.Children) != 1 || len(o.Activities) != 2 || o.Decision != "" || o.WaitsForNothing() {
			t.Fatalf("got %+v", o)
		}
		if a, b := o.Activities[0], o.Activities[1]; a.Token != k.Token || a.Worker != "worker 1" || a.StartedAt == 0 || a.Deadline == 0 || b.NotBefore == 0 || b.StartedAt != 0 {
			t.Fatalf("got %+v", o.Activities)
		}
		if due := o.Activities[0].Deadline; o.Due != due && o.Due != o.Activities[1].NotBefore {
			t.Fatalf("due at %s, want the earlier of %s and %s", o.Due, due, o.Activities[1].NotBefore)
		}
		if !kid.WaitsForNothing() || kid.Due != kid.Timeout || d.Status != "completed" || nobody.Run != "" || nobody.Busy {
			t.Fatalf("got %+v, %+v, %+v", kid, d, nobody)
		}
		if a := f.api("audit", `{"workflows":["o"],"partition":7}`); a["error"] == nil {
			t.Fatalf("got %v for a partition that is not there", a)
		}
		if a := f.api("audit", fmt.Sprintf(`{"workflows":[%s"o"]}`, strings.Repeat(`"o",`, schemas.MaxAudit))); a["error"] == nil {
			t.Fatalf("got %v for too many", a)
		}
	})
}

// A repair is refused where there is nothing to repair.
func TestRepairIsRefused(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", one(""))
		f.start(startO)
		f.await("o", schemas.EventActivityScheduled)
		for body, code := range map[string]string{
			`{"workflowId":"nobody"}`: "not_found", `{"workflowId":"o","run":"r9"}`: "conflict", `{}`: "invalid_argument",
		} {
			e, _ := f.api("repair", body)["error"].(map[string]any)
			if e["code"] != code {
				t.Errorf("repair %s: got %v, want %s", body, e, code)
			}
		}
		if a := f.api("repair", `{"workflowId":"o","run":"r1"}`); a["run"] != "r1" {
			t.Fatalf("got %v", a)
		}
		f.pull().success()
		f.result("o")
		if again := f.tryPull(30 * time.Second); again != nil {
			if p := again.begin("n"); p.Go { // the copy that the repair made
				t.Fatal("a copy of finished work may run")
			}
		}
		f.wantTypes("o", oneActivity...)
	})
}

// Repeating every open effect at any moment changes no history: runs with activities, timers, children and signals between
// them come out as they would have, and the checker finds nothing.
func TestRepairsAreHarmless(t *testing.T) { // I3, I6, I8, I12
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			switch {
			case d.has("WorkflowStarted"):
				return "[" + scheduleActivity("a", "") + `,{"type":"ScheduleTimer","attributes":{"timerId":"tea","startToFireTimeout":3}}]`
			case d.has("TimerExpired"):
				return `[{"type":"StartChild","attributes":{"workflowId":"` + childOf(d) + `","workflowType":"kid"}}]`
			case d.has("ChildSuccess"):
				return complete
			}
			return "[]"
		})
		f.decider("kid", func(*decisionTask) string { return complete })
		const n = 20
		ended, over := make(chan struct{}), sync.WaitGroup{}
		over.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ended:
					return
				case <-time.After(37 * time.Millisecond):
				}
				f.tryRequest(ns.API("repair"), fmt.Sprintf(`{"workflowId":"o%d"}`, i%n))
			}
		})
		over.Go(func() {
			for range n {
				f.pull().success()
			}
		})
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"o%d","type":"order","input":"o%d"}`, i, i))
		}
		for i := range n {
			if got := f.result(fmt.Sprintf("o%d", i)); got != "completed" {
				t.Errorf("o%d: %s", i, got)
			}
		}
		close(ended)
		over.Wait()
		for i := range n {
			seen := map[schemas.EventType]int{}
			for _, e := range f.events(fmt.Sprintf("o%d", i)) {
				seen[e.Type()]++
			}
			if seen[schemas.EventActivityScheduled] != 1 || seen[schemas.EventTimerExpired] != 1 || seen[schemas.EventChildStarted] != 1 || seen[schemas.EventChildSuccess] != 1 {
				t.Errorf("o%d: %v", i, seen)
			}
		}
	})
}

// childOf names the child of a run by its token, which begins with the run.
func childOf(d *decisionTask) string {
	run, _, _ := strings.Cut(d.Token, ".")
	return "kid-" + run
}

// Each answer about a parked run is about that run, wherever its record lies and whatever is missing beside it.
func TestAuditOfSleepers(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", sleeper)
		f.decider("short", func(*decisionTask) string { return complete })
		const n = 60
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf("w%d", n-i) // not in the order of the question
			f.start(fmt.Sprintf(`{"workflowId":%q,"type":"order","run":"r%d"}`, ids[i], n-i))
			for j := range i % 5 { // up to four other records in between
				f.start(fmt.Sprintf(`{"workflowId":"w%d.%d","type":"short"}`, i, j))
			}
		}
		slices.Sort(ids)
		time.Sleep(30 * time.Second)
		if err := f.post.PurgeSubject(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "w7.0")); err != nil {
			t.Fatal(err)
		}
		a := f.audited(ids...)
		for i, r := range a.Runs {
			if r.WorkflowID != ids[i] || r.Run != "r"+ids[i][1:] || r.Status != "open" || r.Timers != 1 || r.Busy || r.Due == 0 {
				t.Errorf("got %+v, want %s asleep", r, ids[i])
			}
		}
	})
}
