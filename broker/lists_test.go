package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// ids are the workflow ids of a list, in order.
func (f *fleet) ids(filters string) string {
	f.t.Helper()
	executions, _ := f.api("list", "{"+filters+"}")["executions"].([]any)
	var ids []string
	for _, e := range executions {
		ids = append(ids, e.(map[string]any)["workflowId"].(string))
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func TestListFiltersAndCount(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("quick", func(*decisionTask) string { return complete })
		f.decider("parent", func(task *decisionTask) string {
			if task.has("WorkflowStarted") {
				return `[{"type":"StartChild","attributes":{"workflowId":"child","workflowType":"idle"}}]`
			}
			return `[]`
		})
		f.start(`{"workflowId":"one","type":"quick","tagList":["red","big"]}`)
		f.result("one")
		time.Sleep(time.Second)
		noon := time.Now()
		time.Sleep(time.Second)
		f.start(`{"workflowId":"two","type":"quick","tagList":["red"]}`)
		f.result("two")
		f.start(`{"workflowId":"three","type":"idle","tagList":["blue"]}`)
		f.start(`{"workflowId":"family","type":"parent"}`)
		f.await("family", schemas.EventChildStarted)
		at := fmt.Sprintf("%q", schemas.At(noon))
		for _, tt := range []struct{ filters, want string }{
			{``, "child family one three two"},
			{`"tag":"red"`, "one two"},
			{`"tag":"big"`, "one"},
			{`"tag":"re"`, ""},
			{`"parent":"family"`, "child"},
			{`"parent":"nobody"`, ""},
			{`"status":"closed"`, "one two"},
			{`"status":"open"`, "child family three"},
			{`"closedAfter":` + at, "two"},
			{`"closedBefore":` + at, "one"},
			{`"startedAfter":` + at, "child family three two"},
			{`"startedBefore":` + at + `,"tag":"red"`, "one"},
			{`"workflowId":"two"`, "two"},
			// R15: children are left out if that is wanted.
			{`"topLevel":true`, "family one three two"},
			{`"topLevel":true,"status":"open"`, "family three"},
			{`"topLevel":true,"workflowId":"child"`, ""},
			{`"topLevel":true,"parent":"family"`, ""},
			{`"prefix":"t","type":"idle"`, "three"},
		} {
			if got := f.ids(tt.filters); got != tt.want {
				t.Errorf("list %s: got %q, want %q", tt.filters, got, tt.want)
			}
			a := f.api("count", "{"+tt.filters+"}")
			if n := len(strings.Fields(tt.want)); a["count"] != float64(n) || a["truncated"] != nil {
				t.Errorf("count %s: got %v, want %d", tt.filters, a, n)
			}
		}
		raw, err := json.Marshal(f.api("list", `{"parent":"family"}`))
		if err != nil {
			t.Fatal(err)
		}
		var page schemas.ListResponse
		if err := json.Unmarshal(raw, &page); err != nil {
			t.Fatal(err)
		}
		if p := page.Executions[0].Parent; p == nil || p.WorkflowID != "family" || p.Run == "" {
			t.Errorf("got parent %+v, want the family and its run", p)
		}
	})
}

// The time of the start is that of its event, whoever is asked, however far the run has come, and whoever owns it: what a list shows is
// given to filters.
func TestEverybodyShowsOneTimeOfAStart(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		often := func(o *broker.Options) { o.SnapshotEvents = 4 }
		f.decider("order", f.counting(8))
		a := f.node("a", nil, often)
		f.start(`{"workflowId":"o","type":"order"}`)
		began := f.events("o")[0].Time
		shown := func(when string) {
			t.Helper()
			var list schemas.ListResponse
			f.apiInto(&list, "list", "{}")
			var described schemas.DescribeResponse
			f.apiInto(&described, "describe", `{"workflowId":"o"}`)
			got := []schemas.Timestamp{list.Executions[0].StartedAt, described.Execution.StartedAt}
			for _, r := range f.audited("o").Runs {
				if !schemas.Status(r.Status).Closed() {
					got = append(got, r.StartedAt)
				}
			}
			for _, at := range got {
				if at != began {
					t.Errorf("%s: a list, a description and an audit show %v, want %v of each", when, got, began)
				}
			}
			if got := f.ids(fmt.Sprintf(`"startedAfter":%q`, began)) + f.ids(fmt.Sprintf(`"startedBefore":%q`, began)); got != "" {
				t.Errorf("%s: a list of those before and after shows %s", when, got)
			}
		}
		shown("started")
		for i := range 7 {
			f.publish("drover.default.signal.o.s", fmt.Sprint(i))
			time.Sleep(time.Second)
			shown(fmt.Sprintf("signal %d", i))
		}
		a.stop()
		f.node("b", nil, often)
		shown("another owner")
		f.publish("drover.default.signal.o.s", "last")
		f.completes("o")
		shown("closed")
	})
}

// A page that is full says where to go on, also when what follows does not match.
func TestListPages(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		for i := range 7 {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"idle","tagList":["t%d"]}`, i, i%2))
		}
		var got []string
		cursor := ""
		for range 10 {
			page := f.api("list", fmt.Sprintf(`{"limit":2,"tag":"t0","cursor":%q}`, cursor))
			for _, e := range page["executions"].([]any) {
				got = append(got, e.(map[string]any)["workflowId"].(string))
			}
			if cursor, _ = page["cursor"].(string); cursor == "" {
				break
			}
		}
		slices.Sort(got)
		if want := []string{"w0", "w2", "w4", "w6"}; !slices.Equal(got, want) || cursor != "" {
			t.Fatalf("got %v and cursor %q, want %v", got, cursor, want)
		}
	})
}

// A page is no larger than a message, however much its runs show, and says where to go on.
func TestListOfLargeAttributes(t *testing.T) {
	for name, value := range map[string]string{"text": strings.Repeat("x", 30<<10), "control characters": strings.Repeat(`\u0001`, 8<<10)} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				const n = 40
				for i := range n {
					f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"idle","attributes":{"k":"%s"}}`, i, value))
				}
				listed, cursor := 0, ""
				for range n {
					page := f.api("list", fmt.Sprintf(`{"cursor":%q}`, cursor))
					lines, _ := page["executions"].([]any)
					if listed += len(lines); len(lines) == 0 {
						t.Fatalf("got %v, want a page", page)
					}
					if cursor, _ = page["cursor"].(string); cursor == "" {
						break
					}
				}
				if listed != n {
					t.Fatalf("got %d runs, want %d", listed, n)
				}
			})
		})
	}
}

// What no run can match, and a cursor of no list, are refused: an empty list would look like an answer.
func TestListsThatAreRefused(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.start(`{"workflowId":"w","type":"idle"}`)
		for _, tt := range []struct{ verb, filter, field string }{
			{"list", `"status":"running"`, "status"},
			{"count", `"status":"OPEN"`, "status"},
			{"list", `"cursor":"2.1"`, "cursor"},
			{"list", `"cursor":"x"`, "cursor"},
			{"list", `"cursor":"-1.1"`, "cursor"},
			{"list", `"status":"closed","cursor":"1.1"`, ""},
			{"count", `"status":"open"`, ""},
		} {
			a := f.api(tt.verb, "{"+tt.filter+"}")
			e, _ := a["error"].(map[string]any)
			if got, _ := e["field"].(string); got != tt.field || (tt.field != "") != (e["code"] == "invalid_argument") {
				t.Errorf("%s %s: got %v, want %q refused", tt.verb, tt.filter, a, tt.field)
			}
		}
	})
}

func TestCountThatTakesTooLong(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		var cut atomic.Bool
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if cut.Load() && subj == "$JS.API.STREAM.INFO."+ns.StreamHistory(1) {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		for i := range 20 {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"idle"}`, i))
		}
		cut.Store(true)
		began := time.Now()
		a := f.api("count", `{"wait":3}`)
		n, _ := a["count"].(float64)
		if took := time.Since(began); a["truncated"] != true || n < 1 || n > 19 || took != 3*time.Second {
			t.Fatalf("got %v after %v, want what one of two partitions has, after 3 s", a, took)
		}
	})
}

func TestTaskLists(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		if lists := f.lists(); len(lists) > 0 {
			t.Fatalf("got %v, want no lists", lists)
		}
		f.api("tasklist", `{"list":"empty"}`)
		f.decider("order", func(task *decisionTask) string {
			if task.has("WorkflowStarted") {
				return "[" + scheduleActivity("a1", "") + "," + scheduleActivity("a2", "") + "," + scheduleActivity("a3", "") + "]"
			}
			return `[]`
		})
		before := schemas.At(time.Now())
		f.start(`{"workflowId":"one","type":"order"}`)
		f.await("one", schemas.EventActivityScheduled)
		taken := f.pull()
		time.Sleep(time.Minute / 10) // less than the lease
		got := f.lists()
		if len(got) != 2 || got[1].OldestAt < before || got[1].OldestAt > before.Add(schemas.Seconds(5)) {
			t.Fatalf("got %+v, want two lists, and the oldest task put there at about %v", got, before)
		}
		got[1].OldestAt = 0
		want := []schemas.TaskListInfo{{List: "empty"}, {List: "main", Pending: 2, Working: 1}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		taken.success()
		f.pull().success()
		f.pull().success()
		if got := f.tryPull(time.Second); got != nil {
			t.Fatalf("got another task %+v", got)
		}
		if got := f.lists(); !cmp.Equal(got[1], schemas.TaskListInfo{List: "main"}) {
			t.Fatalf("got %+v, want an empty list", got[1])
		}
	})
}

func (f *fleet) lists() []schemas.TaskListInfo {
	f.t.Helper()
	raw, err := json.Marshal(f.api("lists", `{}`))
	if err != nil {
		f.t.Fatal(err)
	}
	var a schemas.TaskListsResponse
	if err := json.Unmarshal(raw, &a); err != nil {
		f.t.Fatal(err)
	}
	if a.Error != nil {
		f.t.Fatal(a.Error)
	}
	return a.Lists
}

// A list is read in windows of records. A run whose last record stands in a later one is shown there, once.
func TestListOverManyRecords(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string {
			if d.has("WorkflowStarted") {
				return "[]"
			}
			return `[{"type":"RecordMarker","attributes":{"markerName":"m"}}]`
		})
		const n, signals = 300, 3
		f.starts(n)
		for s := range signals {
			for i := s; i < n; i++ { // some fewer than others
				f.publish(ns.Signal(fmt.Sprintf("w%d", i), "go"), "")
			}
			time.Sleep(time.Second)
		}
		if got := len(f.records(0)); got < 2*512 {
			t.Fatalf("%d records are too few for three windows", got)
		}
		seen, cursor := map[string]int{}, ""
		for {
			page := f.api("list", fmt.Sprintf(`{"limit":70,"status":"open","cursor":"%s"}`, cursor))
			lines, _ := page["executions"].([]any)
			for _, l := range lines {
				line, _ := l.(map[string]any)
				seen[fmt.Sprint(line["workflowId"])]++
			}
			if cursor, _ = page["cursor"].(string); cursor == "" {
				break
			}
		}
		for i := range n {
			if got := seen[fmt.Sprintf("w%d", i)]; got != 1 {
				t.Errorf("w%d was listed %d times", i, got)
			}
		}
		if got := f.api("count", "{}")["count"]; len(seen) != n || got != float64(n) {
			t.Errorf("%d listed, %v counted, want %d", len(seen), got, n)
		}
	})
}
