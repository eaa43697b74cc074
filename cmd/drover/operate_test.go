package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/namespaces"
	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func TestCancelAndTerminate(t *testing.T) {
	s := newService(t)
	var got schemas.ExecutionRequest
	on(s, "describe", func(schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r1"}}
	})
	for _, verb := range []string{"cancel", "terminate"} {
		on(s, verb, func(req schemas.ExecutionRequest) any { got = req; return schemas.AckResponse{Run: req.Run} })
	}
	s.drover("", "cancel", "a b", "--reason", "no longer wanted").want(t, cli.ExitDone, "requested the cancellation of \"a b\" run r1\n")
	if got.Run != "r1" || got.Reason != "no longer wanted" || got.RequestID == "" {
		t.Fatalf("got %+v", got)
	}
	s.drover("", "cancel", "a", "--run", "r2", "-o", "json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r2"}`+"\n")

	s.drover("", "terminate", "a").want(t, cli.ExitDone, "terminated a run r1\n")
	if got.Reason != "" || got.Details != nil || got.ChildPolicy != "" {
		t.Fatalf("got %+v, want no words of our own", got)
	}
	s.drover(`{"why":1}`, "terminate", "a", "--run", "r3", "--reason", "stuck", "--details", "-", "--child-policy", "abandon", "-o", "yaml").
		want(t, cli.ExitDone, "workflowId: a\nrun: r3\n")
	want := schemas.ExecutionRequest{
		V: 1, WorkflowID: "a", Run: "r3", Reason: "stuck", Details: schemas.Payload(`{"why":1}`), ChildPolicy: schemas.ChildAbandon,
		RequestID: got.RequestID, Identity: got.Identity,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", "terminate", "a", "--details", "too late", "--raw").want(t, cli.ExitDone, "terminated a run r1\n")
	if string(got.Details) != "too late" {
		t.Fatalf("got details %q", got.Details)
	}
}

// What changes nothing says so: a reason that was given stands nowhere.
func TestNothingToOperate(t *testing.T) {
	s := newService(t)
	var now schemas.DescribeResponse
	on(s, "describe", func(schemas.ExecutionRequest) any { return now })
	for _, verb := range []string{"pause", "resume", "cancel", "hold", "release"} {
		on(s, verb, func(req schemas.ExecutionRequest) any { return schemas.AckResponse{Run: req.Run} })
	}
	for _, tt := range []struct {
		verb      string
		status    schemas.Status
		requested bool
		held      *schemas.ContinuationHeld
		want      string
	}{
		{"pause", schemas.StatusOpen, false, nil, "paused a run r1\n"},
		{"pause", schemas.StatusPaused, false, nil, "nothing was done: a run r1 is paused already\n"},
		{"resume", schemas.StatusPaused, false, nil, "resumed a run r1\n"},
		{"resume", schemas.StatusOpen, false, nil, "nothing was done: a run r1 is not paused\n"},
		{"cancel", schemas.StatusOpen, false, nil, "requested the cancellation of a run r1\n"},
		{"cancel", schemas.StatusPaused, true, nil, "nothing was done: a run r1 is asked to end already\n"},
		{"hold", schemas.StatusOpen, false, nil, "held a run r1\n"},
		{"hold", schemas.StatusOpen, false, &schemas.ContinuationHeld{}, "nothing was done: a run r1 is held already\n"},
		{"release", schemas.StatusPaused, false, &schemas.ContinuationHeld{}, "released a run r1\n"},
		{"release", schemas.StatusOpen, false, nil, "nothing was done: a run r1 is not held\n"},
	} {
		now = schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r1", Status: tt.status}, CancelRequested: tt.requested, Held: tt.held}
		s.drover("", tt.verb, "a").want(t, cli.ExitDone, tt.want)
		doc := `{"workflowId":"a","run":"r1"}`
		if strings.HasPrefix(tt.want, "nothing") {
			doc = `{"workflowId":"a","run":"r1","unchanged":true}`
		}
		s.drover("", tt.verb, "a", "--json").want(t, cli.ExitDone, doc+"\n")
	}
}

func TestStartPolicies(t *testing.T) {
	s := newService(t)
	var got schemas.StartRequest
	answer := schemas.StartResponse{WorkflowID: "a", Run: "r1", Started: true}
	on(s, "start", func(req schemas.StartRequest) any { got = req; return answer })
	s.drover("", "start", "t", "--id", "a", "--reuse-policy", "failed-only", "--conflict-policy", "terminate-existing").
		want(t, cli.ExitDone, "started a run r1\n")
	if got.IDReusePolicy != schemas.ReuseAllowFailed || got.IDConflictPolicy != schemas.ConflictTerminateExisting || got.Signal != nil {
		t.Fatalf("got %+v", got)
	}
	answer.Started = false
	s.drover("", "start", "t", "--id", "a", "--request-id", "again").want(t, cli.ExitDone, "started a run r1\n")
	s.drover("", "start", "t", "--id", "a", "--conflict-policy", "use-existing").want(t, cli.ExitDone, "found a run r1\n")
	s.drover("", "start", "t", "--id", "a", "--conflict-policy", "use-existing", "--json").
		want(t, cli.ExitDone, `{"workflowId":"a","run":"r1","started":false}`+"\n")
}

func TestSignalWithStart(t *testing.T) {
	s := newService(t)
	var got schemas.StartRequest
	answer := schemas.StartResponse{WorkflowID: "a", Run: "r1", Started: true}
	on(s, "start", func(req schemas.StartRequest) any { got = req; return answer })
	s.drover("[2]", "start", "cart", "--id", "a", "--input", "1", "--signal", "add", "--signal-input", "-", "--request-id", "q").
		want(t, cli.ExitDone, "started a run r1, signaled it with add\n")
	want := schemas.StartRequest{
		V: 1, WorkflowID: "a", Run: got.Run, RequestID: "q", Type: "cart", Input: schemas.Payload("1"), Identity: got.Identity,
		IDConflictPolicy: schemas.ConflictUseExisting, Signal: &schemas.StartSignal{Name: "add", Input: schemas.Payload("[2]"), RequestID: "q"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	answer.Started = false
	s.drover("", "start", "cart", "--id", "a", "--signal", "add").want(t, cli.ExitDone, "found a run r1, signaled it with add\n")
	if got.Signal.Input != nil {
		t.Fatalf("got signal input %q, want none", got.Signal.Input)
	}
	s.drover("", "start", "cart", "--id", "a", "--signal", "add", "--json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r1","started":false}`+"\n")
}

func TestFilters(t *testing.T) {
	s := newService(t)
	var list schemas.ListRequest
	var count schemas.CountRequest
	on(s, "list", func(req schemas.ListRequest) any { list = req; return schemas.ListResponse{} })
	on(s, "count", func(req schemas.CountRequest) any { count = req; return schemas.CountResponse{Count: 12} })
	filters := []string{
		"--status", "closed", "--type", "order", "--id", "a", "--prefix", "b", "--tag", "red", "--parent", "p",
		"--started-after", "2026-01-02T03:04:05Z", "--started-before", "2026-01-03", "--closed-after", "2026-01-02 03:04:06.5Z",
		"--closed-before", "2026-01-02 03:04:07",
	}
	s.drover("", append([]string{"list", "--scan"}, filters...)...).want(t, cli.ExitDone, "", "no workflows")
	want := schemas.ListRequest{
		V: 1, Status: "closed", Type: "order", WorkflowID: "a", Prefix: "b", Tag: "red", Parent: "p",
		After: at(0), Before: schemas.At(time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)), ClosedAfter: at(1.5), ClosedBefore: at(2), Limit: list.Limit,
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", append([]string{"count", "--scan"}, filters...)...).want(t, cli.ExitDone, "12\n")
	want.Limit = 0
	if diff := cmp.Diff(&want, count.List()); diff != "" || count.Wait == 0 {
		t.Fatalf("wait %v %s", count.Wait, diff)
	}
	began := time.Now()
	s.drover("", "list", "--scan", "--closed-after", "90m").want(t, cli.ExitDone, "", "no workflows")
	if diff := cmp.Diff(began.Add(-90*time.Minute), list.ClosedAfter.Time(), cmpopts.EquateApproxTime(time.Minute)); diff != "" {
		t.Fatal(diff)
	}

	var groups ops.GroupsRequest
	on(s, "groups", func(req ops.GroupsRequest) any { groups = req; return ops.GroupsResponse{Total: 12} })
	s.drover("", append([]string{"count"}, filters...)...).want(t, cli.ExitDone, "12\n")
	if want := "status = 'closed' AND type = 'order' AND id STARTS_WITH 'b' AND id = 'a' AND tag = 'red' AND parent = 'p' AND " +
		"started > '2026-01-02T03:04:05Z' AND started < '2026-01-03T00:00:00Z' AND " +
		"closed > '2026-01-02T03:04:06.5Z' AND closed < '2026-01-02T03:04:07Z'"; groups.Filter != want {
		t.Errorf("got  %s\nwant %s", groups.Filter, want)
	}
	if _, err := query.Parse(groups.Filter, began); err != nil {
		t.Error(err)
	}
}

func TestCount(t *testing.T) {
	s := newService(t)
	answer := schemas.CountResponse{Count: 7}
	on(s, "count", func(schemas.CountRequest) any { return answer })
	s.drover("", "count", "--scan").want(t, cli.ExitDone, "7\n")
	s.drover("", "count", "--scan", "--json").want(t, cli.ExitDone, `{"count":7}`+"\n")
	answer.Truncated = true
	s.drover("", "count", "--scan").want(t, cli.ExitDone, "7 or more\n")
	s.drover("", "count", "--scan", "--json").want(t, cli.ExitDone, `{"count":7,"truncated":true}`+"\n")
}

func TestLists(t *testing.T) {
	s := newService(t)
	all := []schemas.TaskListInfo{{List: "PCI", Pending: 12, Working: 3, Workers: 1, OldestAt: at(0)}, {List: "words"}}
	on(s, "lists", func(schemas.TaskListsRequest) any { return schemas.TaskListsResponse{Lists: all} })
	r := s.drover("", "tasklist", "list")
	if r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "LIST   PENDING  WORKING  WORKERS  OLDEST\nPCI    12       3        1        ") ||
		!strings.HasSuffix(r.stdout, "\nwords  0        0        0        -\n") {
		t.Fatalf("got %+v", r)
	}
	if got := namespaces.TaskListRow(all[0], at(61).Time()); got[4] != "1m01.000s" {
		t.Fatalf("got %q", got)
	}
	s.drover("", "tasklist", "list", "--json").want(t, cli.ExitDone, `{"list":"PCI","pending":12,"working":3,"workers":1,"oldestAt":"2026-01-02T03:04:05Z"}`+"\n"+
		`{"list":"words","pending":0,"working":0,"workers":0}`+"\n")
	all = nil
	s.drover("", "tasklist", "list").want(t, cli.ExitDone, "", "no task lists")
}
