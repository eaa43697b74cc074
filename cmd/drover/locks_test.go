package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
)

func TestLocks(t *testing.T) {
	s := newService(t)
	place := func(wid string, fence uint64) schemas.LockPlace {
		return schemas.LockPlace{WorkflowID: wid, Run: "r", EventID: 5, Fence: fence, Since: 1}
	}
	all := []schemas.LockRecord{
		{Lock: "apt", Limit: 1, Next: 8, Holders: []schemas.LockPlace{place("w1", 7)}, Waiters: []schemas.LockPlace{place("w2", 0), place("w3", 0)}},
		{Lock: "slots", Scope: "host 1", Limit: 3, Next: 3, Holders: []schemas.LockPlace{place("a", 1), place("b", 2)}},
	}
	for i := range 7 {
		all[1].Waiters = append(all[1].Waiters, place(strings.Repeat("x", i+1), 0))
	}
	var asked schemas.LocksRequest
	on(s, "locks", func(q schemas.LocksRequest) any {
		asked = q
		if q.Lock == "free" {
			return schemas.LocksResponse{Locks: []schemas.LockRecord{}}
		}
		if q.Lock != "" {
			return schemas.LocksResponse{Locks: all[map[string]int{"apt": 0, "slots": 1}[q.Lock]:][:1]}
		}
		return schemas.LocksResponse{Locks: all}
	})
	r := s.drover("", "lock", "list")
	for _, want := range []string{"apt    -         1      w1       ", "w2, w3", `"host 1"`, "a, b", "x, xx, xxx, xxxx, xxxxx, and 2 more"} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in (exit %d)\n%s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	s.drover("", "lock", "list", "--lock", "apt", "--json").want(t, cli.ExitDone, `{"lock":"apt","limit":1,"next":8,"holders":[{"workflowId":"w1","run":"r","eventId":5,"fence":7,"since":"1970-01-01T00:00:00.000000001Z"}],`+
		`"waiters":[{"workflowId":"w2","run":"r","eventId":5,"since":"1970-01-01T00:00:00.000000001Z"},{"workflowId":"w3","run":"r","eventId":5,"since":"1970-01-01T00:00:00.000000001Z"}]}`+"\n")
	if asked.Lock != "apt" || asked.Scope != "" {
		t.Fatalf("asked %+v", asked)
	}

	var got schemas.ExecutionRequest
	on(s, "describe", func(schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r9"}}
	})
	on(s, "breakLock", func(q schemas.ExecutionRequest) any { got = q; return schemas.AckResponse{Run: q.Run} })
	s.drover("", "lock", "break", "apt", "--reason", "stuck").want(t, cli.ExitDone, "took lock apt from w1\n")
	if got.WorkflowID != "w1" || got.Run != "r9" || got.Lock != "apt" || got.Reason != "stuck" || got.RequestID == "" || got.Identity == "" || !got.Chain {
		t.Fatalf("got %+v", got)
	}
	s.drover("", "lock", "break", "slots", "--scope", "host 1", "--reason", "stuck", "--holder", "b", "-o", "json").
		want(t, cli.ExitDone, `{"lock":"slots","scope":"host 1","workflowId":"b"}`+"\n")
	if got.WorkflowID != "b" || got.Scope != "host 1" {
		t.Fatalf("got %+v", got)
	}
	for _, tt := range []struct {
		code int
		want string
		args []string
	}{
		{cli.ExitUsage, "--reason is missing", []string{"lock", "break", "apt"}},
		{cli.ExitUsage, "--reason is missing", []string{"lock", "break", "apt", "--reason", " "}},
		{cli.ExitUsage, "LOCK is missing", []string{"lock", "break", "--reason", "x"}},
		{cli.ExitUsage, "break is missing", []string{"lock"}},
		{cli.ExitUsage, `there is no command "lock open"`, []string{"lock", "open"}},
		{cli.ExitUsage, "--scope needs --lock", []string{"lock", "list", "--scope", "s"}},
		{cli.ExitFailed, "the lock has 2 holders: name one with --holder", []string{"lock", "break", "slots", "--reason", "x"}},
		{cli.ExitFailed, "nobody holds the lock", []string{"lock", "break", "free", "--reason", "x"}},
	} {
		if r := s.drover("", tt.args...); r.code != tt.code || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%v: exit %d, %s; want %d and %q", tt.args, r.code, r.stderr, tt.code, tt.want)
		}
	}
}

// R15: who holds a lock is told as the workflow and the step, however deep the part of the flow is that has asked for it, and
// the lock can be taken away by the name that is shown.
func TestLocksOfParts(t *testing.T) {
	const root, outer, inner = "01M8EK6X1AV5C4ZNCDD72AVBWV", "01M8EK6X1AV5C4ZNCDD72AVBWV:0#1/0", "01M8EK6YG5ATV73GEJ7E43Q3W8:2#1/3"
	parents := map[string]*schemas.Execution{
		outer: {WorkflowID: "order-17", Run: root}, inner: {WorkflowID: outer, Run: "01M8EK6YG5ATV73GEJ7E43Q3W8"},
	}
	s := newService(t)
	on(s, "locks", func(schemas.LocksRequest) any {
		return schemas.LocksResponse{Locks: []schemas.LockRecord{{
			Lock: "apt", Limit: 2, Holders: []schemas.LockPlace{{WorkflowID: inner, Run: "r1"}, {WorkflowID: "plain", Run: "r2"}},
			Waiters: []schemas.LockPlace{{WorkflowID: outer, Run: "r3"}, {WorkflowID: "01M8EK6YG5ATV73GEJ7E43Q3W8:9#1/3", Run: "r4"}},
		}}}
	})
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		if q.WorkflowID == "01M8EK6YG5ATV73GEJ7E43Q3W8:9#1/3" {
			return schemas.DescribeResponse{Error: schemas.Errorf(schemas.CodeNotFound, "it is gone")}
		}
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: "r", Parent: parents[q.WorkflowID]}}
	})
	r := s.drover("", "lock", "list")
	for _, want := range []string{"  order-17 step 0#1/0:2#1/3, plain  ", "  order-17 step 0#1/0, 01M8EK6YG5ATV73GEJ7E43Q3W8:9#1/3\n"} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in\n%+v", want, r)
		}
	}
	r = s.drover("", "lock", "list", "--json")
	if want := `"01M8EK6YG5ATV73GEJ7E43Q3W8:2#1/3":{"workflowId":"order-17","run":"` + root + `","step":"0#1/0:2#1/3"}`; !strings.Contains(r.stdout, want) {
		t.Errorf("want %s in %s", want, r.stdout)
	}
	var broke schemas.ExecutionRequest
	on(s, "breakLock", func(q schemas.ExecutionRequest) any { broke = q; return schemas.AckResponse{Run: q.Run} })
	s.drover("", "lock", "break", "apt", "--holder", "order-17", "--reason", "stuck").want(t, cli.ExitDone, "took lock apt from "+inner+"\n")
	if broke.WorkflowID != inner {
		t.Errorf("got %+v", broke)
	}
}
