package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func TestStart(t *testing.T) {
	s := newService(t)
	var got schemas.StartRequest
	on(s, "start", func(req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "r1", Started: true}
	})
	file := filepath.Join(t.TempDir(), "order.json")
	if err := os.WriteFile(file, []byte(" {\"from\": \"file\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.drover("", "start", "order", "--id", "order-17", "--input", `{"amount": 12}`).want(t, cli.ExitDone, "started order-17 run r1\n")
	if got.Type != "order" || string(got.Input) != `{"amount": 12}` {
		t.Fatalf("got %+v", got)
	}
	s.drover("", "start", "order", "--id", "a b", "--json").want(t, cli.ExitDone, `{"workflowId":"a b","run":"r1"}`+"\n")
	if got.Input != nil {
		t.Fatalf("got input %q, want none", got.Input)
	}
	for in, want := range map[string]string{"@" + file: `{"from": "file"}`, "-": `["stdin"]`, "null": "null", `"x"`: `"x"`} {
		if r := s.drover(`["stdin"]`, "start", "order", "--id", "a", "--input", in); r.code != cli.ExitDone || string(got.Input) != want {
			t.Fatalf("--input %s: got %d %q, want %q", in, r.code, got.Input, want)
		}
	}
	if r := s.drover("\x00\xff ", "start", "order", "--input", "-", "--raw"); r.code != cli.ExitDone || string(got.Input) != "\x00\xff " {
		t.Fatalf("--raw: got %d %q", r.code, got.Input)
	}
}

func TestStartFlags(t *testing.T) {
	s := newService(t)
	var got schemas.StartRequest
	on(s, "start", func(req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: req.Run}
	})
	r := s.drover("", "start", "order", "--id", "a", "--request-id", "q", "--type-version", "2", "--timeout-workflow", "NONE",
		"--timeout-decider", "5s", "--timeout-activity", "90", "--list", "PCI", "--priority", "3", "--child-policy", "cancel",
		"--tag", "x", "--tag", "y", "--attribute", "k=v", "--attribute", "l=w")
	if r.code != cli.ExitDone {
		t.Fatalf("got %d %s", r.code, r.stderr)
	}
	want := schemas.StartRequest{
		V: 1, WorkflowID: "a", Run: got.Run, RequestID: "q", Type: "order", TypeVersion: "2",
		ExecutionStartToCloseTimeout: schemas.Unlimited, TaskStartToCloseTimeout: schemas.Seconds(5), TaskPriority: 3,
		ActivityDefaults: &schemas.ActivityDefaults{List: "PCI", StartToCloseTimeout: schemas.Seconds(90)},
		ChildPolicy:      schemas.ChildRequestCancel, TagList: []string{"x", "y"}, Attributes: map[string]string{"k": "v", "l": "w"},
		Identity: got.Identity,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestResult(t *testing.T) {
	s := newService(t)
	var answer schemas.ResultResponse
	on(s, "result", func(req schemas.ExecutionRequest) any {
		if req.Run != "" {
			answer.Run = req.Run
		}
		return answer
	})
	on(s, "start", func(req schemas.StartRequest) any {
		return schemas.StartResponse{WorkflowID: req.WorkflowID, Run: "r9"}
	})

	answer = schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted, Result: schemas.Payload(`{"ok": true}`)}
	s.drover("", "result", "a").want(t, cli.ExitDone, "{\"ok\":true}\n")
	s.drover("", "result", "a", "--run", "r3").want(t, cli.ExitDone, "{\"ok\":true}\n")
	s.drover("", "result", "a", "--json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r3","status":"completed","result":{"ok":true}}`+"\n")
	s.drover("", "start", "t", "--id", "a", "--wait").want(t, cli.ExitDone, "{\"ok\":true}\n", "started a run r9\n")
	s.drover("", "start", "t", "--id", "a", "--wait", "--json").
		want(t, cli.ExitDone, `{"workflowId":"a","run":"r9","status":"completed","result":{"ok":true}}`+"\n")

	answer = schemas.ResultResponse{Run: "r1", Status: schemas.StatusCompleted}
	s.drover("", "result", "a").want(t, cli.ExitDone, "", "completed without a result")

	answer = schemas.ResultResponse{Run: "r1", Status: schemas.StatusFailed, Reason: "card-declined", Details: schemas.Payload(`{"n":1}`)}
	s.drover("", "result", "a").want(t, cli.ExitFailed, "", `details: {"n":1}`, `drover: workflow "a" run r1: failed: card-declined`)
	r := s.drover("", "result", "a", "--json")
	r.want(t, cli.ExitFailed, `{"workflowId":"a","run":"r1","status":"failed","reason":"card-declined","details":{"n":1}}`+"\n", "{")
	wantErrorDocument(t, r, "failed", "a")
	s.drover("", "start", "t", "--id", "a", "--wait").want(t, cli.ExitFailed, "", "failed: card-declined")

	answer = schemas.ResultResponse{Run: "r1", Status: schemas.StatusTimedOut}
	s.drover("", "result", "a").want(t, cli.ExitFailed, "", `run r1: timed out`)
}

func TestSignalWhyPauseResume(t *testing.T) {
	s := newService(t)
	var signal schemas.SignalRequest
	var ask schemas.ExecutionRequest
	on(s, "signal", func(req schemas.SignalRequest) any {
		signal = req
		return schemas.SignalResponse{Run: "r1", Sequence: 3}
	})
	on(s, "why", func(req schemas.ExecutionRequest) any {
		ask = req
		return schemas.WhyResponse{Run: "r1", Because: "no decider for type \"order\" is listening"}
	})
	on(s, "describe", func(schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{Run: "r1"}}
	})
	for _, verb := range []string{"pause", "resume"} {
		on(s, verb, func(req schemas.ExecutionRequest) any { ask = req; return schemas.AckResponse{Run: req.Run} })
	}

	s.drover("", "signal", "a", "ready", "--input", "7").want(t, cli.ExitDone, "signaled a with ready\n")
	if signal.WorkflowID != "a" || signal.Name != "ready" || string(signal.Input) != "7" || signal.RequestID == "" {
		t.Fatalf("got %+v", signal)
	}
	s.drover("", "signal", "a", "x y", "--json").want(t, cli.ExitDone, `{"workflowId":"a","name":"x y"}`+"\n")

	s.drover("", "why", "a").want(t, cli.ExitDone, "no decider for type \"order\" is listening\n")
	s.drover("", "why", "a", "--run", "r2", "--json").
		want(t, cli.ExitDone, `{"workflowId":"a","run":"r2","because":"no decider for type \"order\" is listening"}`+"\n")
	if ask.Run != "r2" {
		t.Fatalf("got %+v", ask)
	}

	s.drover("", "pause", "a", "--reason", "to look").want(t, cli.ExitDone, "paused a run r1\n")
	if ask.Run != "r1" || ask.Reason != "to look" {
		t.Fatalf("got %+v", ask)
	}
	s.drover("", "resume", "a", "--run", "r5", "--json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r5"}`+"\n")
	if ask.Run != "r5" {
		t.Fatalf("got %+v", ask)
	}
}

func TestList(t *testing.T) {
	s := newService(t)
	var asked ops.QueryRequest
	var got schemas.ListRequest
	runs := []schemas.ExecutionInfo{
		{WorkflowID: "order-17", Run: "r1", Type: "order", Status: schemas.StatusOpen, StartedAt: at(0), Events: 17},
		{WorkflowID: "a b\x1b[31m", Run: "r2", Type: "nightly-report", Status: schemas.StatusTimedOut, StartedAt: at(1), ClosedAt: at(3700.5), Events: 1234, Tags: []string{"x"}},
	}
	on(s, "list", func(req schemas.ListRequest) any { got = req; return schemas.ListResponse{Executions: runs} })
	on(s, "query", func(req ops.QueryRequest) any {
		asked = req
		a := ops.QueryResponse{Runs: []ops.FoundRun{}}
		for _, r := range runs {
			a.Runs = append(a.Runs, ops.FoundRun{ExecutionInfo: r})
		}
		return a
	})
	flags := []string{"--status", "open", "--type", "order", "--prefix", "o", "--limit", "9"}
	r := s.drover("", append([]string{"list", "events > 3", "ORDER BY took"}, flags...)...)
	r.want(t, cli.ExitDone, r.stdout)
	golden(t, "list.golden", r.stdout)
	if diff := cmp.Diff(ops.QueryRequest{
		V: 1, Query: "events > 3 ORDER BY took", Limit: 10, Wait: schemas.Seconds(5),
		Filter: "status = 'open' AND type = 'order' AND id STARTS_WITH 'o' AND parent IS NULL",
	}, asked); diff != "" {
		t.Fatal(diff)
	}
	r = s.drover("", "list", "--json")
	golden(t, "list.json.golden", r.stdout)

	r = s.drover("", append([]string{"list", "--scan"}, flags...)...)
	golden(t, "list.golden", r.stdout)
	if diff := cmp.Diff(schemas.ListRequest{V: 1, Status: schemas.StatusOpen, Type: "order", Prefix: "o", TopLevel: true, Limit: 10}, got); diff != "" {
		t.Fatal(diff)
	}
	r = s.drover("", "list", "--json", "--scan")
	golden(t, "list.json.golden", r.stdout)

	runs = nil
	for _, scan := range []string{"--scan", "--scan=false"} {
		s.drover("", "list", scan).want(t, cli.ExitDone, "", "no workflows")
		s.drover("", "list", "--json", scan).want(t, cli.ExitDone, "")
	}
}

// What the query says decides whether children are left out, and how many a table has.
func TestListByQuery(t *testing.T) {
	s := newService(t)
	var asked ops.QueryRequest
	on(s, "query", func(req ops.QueryRequest) any {
		asked = req
		return ops.QueryResponse{Runs: []ops.FoundRun{{ExecutionInfo: schemas.ExecutionInfo{WorkflowID: "a"}}}}
	})
	for _, tt := range []struct {
		query, filter string
		limit         int
	}{
		{"", "parent IS NULL", 51},
		{"status = open LIMIT 7", "parent IS NULL", 1000},
		{"id STARTS_WITH x", "parent IS NULL", 51},
		{"id = x", "", 51},
		{"status = open AND (parent = p OR type = t)", "", 51},
		{"run IN (r1, r2)", "", 51},
	} {
		s.drover("", "list", tt.query).want(t, cli.ExitDone, s.drover("", "list", tt.query).stdout)
		if asked.Filter != tt.filter || asked.Limit != tt.limit {
			t.Errorf("%s: asked with the filter %q and the limit %d, want %q and %d", tt.query, asked.Filter, asked.Limit, tt.filter, tt.limit)
		}
	}
}

// A query that cannot be read is refused with a mark below the place, and so is what does not go together.
func TestListRefused(t *testing.T) {
	s := newService(t)
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"list", "type = order AND statsu = open"}, []string{"column 18: ", "did you mean status?", "\n  type = order AND statsu = open\n                   ^^^^^^\n"}},
		{[]string{"count", "GROUP BY id"}, []string{"column 10: "}},
		{[]string{"list", "GROUP BY type"}, []string{"drover count"}},
		{[]string{"list", "--scan", "type = order"}, []string{"--scan takes no QUERY"}},
		{[]string{"list", "--scan", "--watch"}, []string{"--watch needs the index"}},
	} {
		r := s.drover("", tt.args...)
		if r.code != cli.ExitUsage || r.stdout != "" {
			t.Errorf("%q: got %+v", tt.args, r)
		}
		for _, want := range tt.want {
			if !strings.Contains(r.stderr, want) {
				t.Errorf("%q: got %q, want %q", tt.args, r.stderr, want)
			}
		}
		for line := range strings.Lines(r.stderr) {
			if len(line) > 81 && strings.Contains(line, "^") {
				t.Errorf("%q: a line has more than 80 columns: %s", tt.args, line)
			}
		}
	}
	r := s.drover("", "list", strings.Repeat("type = order AND ", 9)+"nosuch[", "--json")
	wantErrorDocument(t, r, schemas.CodeInvalid, "")
}

// Where no index answers, the other way is named; and what an index does not have is said.
func TestListWithoutIndex(t *testing.T) {
	s := newService(t)
	on(s, "query", func(ops.QueryRequest) any {
		return ops.QueryResponse{Error: schemas.Errorf(schemas.CodeUnsupported, "there is no such verb")}
	})
	s.drover("", "list").want(t, cli.ExitFailed, "", "--scan reads the histories")

	s = newService(t)
	state := ops.IndexState{Building: 0.43}
	on(s, "query", func(ops.QueryRequest) any { return ops.QueryResponse{Runs: []ops.FoundRun{}, Index: state} })
	on(s, "groups", func(ops.GroupsRequest) any {
		return ops.GroupsResponse{Groups: []ops.RunGroup{{Count: 3}}, All: 1, Total: 3, Index: state}
	})
	s.drover("", "list").want(t, cli.ExitDone, "", "no workflows", "43% of it is there")
	s.drover("", "count").want(t, cli.ExitDone, "3\n", "43% of it is there")
	state = ops.IndexState{Gone: 2, Lag: 5}
	s.drover("", "count").want(t, cli.ExitDone, "3\n", "2 closed runs have left")
}

// Groups are a table, or documents.
func TestCountGroups(t *testing.T) {
	s := newService(t)
	var asked ops.GroupsRequest
	on(s, "groups", func(req ops.GroupsRequest) any {
		asked = req
		return ops.GroupsResponse{
			Columns: []string{"status", "type"}, All: 3, Total: 9,
			Groups: []ops.RunGroup{{Values: []string{"failed", "order"}, Count: 5}, {Values: []string{"open", ""}, Count: 3}},
		}
	})
	s.drover("", "count", "GROUP BY status, type", "--all").
		want(t, cli.ExitDone, "STATUS  TYPE   COUNT\nfailed  order  5\nopen    -      3\n", "the largest 2 of 3 groups")
	if asked.Filter != "" || asked.Query != "GROUP BY status, type" {
		t.Errorf("got %+v", asked)
	}
	s.drover("", "count", "GROUP BY status, type", "--json").
		want(t, cli.ExitDone, `{"values":["failed","order"],"count":5}`+"\n"+`{"values":["open",""],"count":3}`+"\n")
}

func TestListThatBreaksOff(t *testing.T) {
	s := newService(t)
	on(s, "query", func(req ops.QueryRequest) any {
		if req.Cursor != "" {
			return ops.QueryResponse{Error: schemas.Errorf(schemas.CodeInternal, "it broke")}
		}
		return ops.QueryResponse{Runs: []ops.FoundRun{{ExecutionInfo: schemas.ExecutionInfo{WorkflowID: "a", Run: "r1"}}}, Cursor: "x"}
	})
	r := s.drover("", "list", "--json")
	if r.code != cli.ExitFailed || !strings.HasPrefix(r.stdout, `{"workflowId":"a"`) || strings.Count(r.stdout, "\n") != 1 {
		t.Fatalf("got %d, stdout %q", r.code, r.stdout)
	}
	wantErrorDocument(t, r, schemas.CodeInternal, "")
}

func TestDead(t *testing.T) {
	s := newService(t)
	var got schemas.DeadRequest
	on(s, "dead", func(req schemas.DeadRequest) any {
		got = req
		return schemas.DeadResponse{Letters: []schemas.DeadEntry{{Sequence: 5, DeadLetter: schemas.DeadLetter{
			Reason: "unknown-workflow", Details: "no run of it", Subject: "drover.default.signal.a.b", Time: at(0), Body: []byte("hi"),
		}}}}
	})
	r := s.drover("", "dead", "--reason", "unknown-workflow", "--limit", "1", "--after", "4")
	r.want(t, cli.ExitDone, r.stdout)
	golden(t, "dead.golden", r.stdout)
	if diff := cmp.Diff(schemas.DeadRequest{V: 1, Reason: "unknown-workflow", Limit: 1, After: 4}, got); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", "dead", "--json").want(t, cli.ExitDone, `{"sequence":5,"reason":"unknown-workflow","details":"no run of it","subject":"drover.default.signal.a.b","time":"2026-01-02T03:04:05Z","body":"aGk="}`+"\n")
}

func TestDeadCount(t *testing.T) {
	s := newService(t)
	var got schemas.DeadRequest
	on(s, "dead", func(req schemas.DeadRequest) any {
		got = req
		return schemas.DeadResponse{Counts: []schemas.DeadCount{{Reason: "stale-token", Count: 2}, {Reason: "unknown-workflow", Count: 1}}}
	})
	r := s.drover("", "dead", "--count")
	r.want(t, cli.ExitDone, "REASON            LETTERS\nstale-token       2\nunknown-workflow  1\n")
	if diff := cmp.Diff(schemas.DeadRequest{V: 1, Count: true}, got); diff != "" {
		t.Fatal(diff)
	}
	s.drover("", "dead", "--count", "--json").want(t, cli.ExitDone, `{"reason":"stale-token","count":2}`+"\n"+`{"reason":"unknown-workflow","count":1}`+"\n")
}

func TestDescribe(t *testing.T) {
	d := &schemas.DescribeResponse{
		V:         1,
		Execution: schemas.ExecutionInfo{WorkflowID: "order-17", Run: "r1", Type: "order", TypeVersion: "2", Status: schemas.StatusPaused, StartedAt: at(0), Events: 9, Tags: []string{"x", "y z"}, Attributes: map[string]string{"b": "2", "a": "1"}},
		Partition: 2, Owner: "node-a", Decision: "scheduled", DeciderAttempt: 3,
		Activities: []schemas.OpenActivity{
			{ActivityID: "a1", Type: "charge", List: "PCI", ScheduledAt: at(1)},
			{ActivityID: "a2", Type: "ship", List: "DEPOT", ScheduledAt: at(1), StartedAt: at(2), Worker: "host:1", Attempt: 2, Deadline: at(600), CancelRequested: true},
		},
		Timers: []schemas.OpenTimer{{TimerID: "t1", Due: at(60)}},
		Children: []schemas.OpenChild{
			{WorkflowID: "parcel 1", Run: "c1", Type: "parcel", ScheduledEventID: 5, ScheduledAt: at(3), Started: true},
			{WorkflowID: "parcel-2", Run: "c2", Type: "parcel", ScheduledEventID: 6, ScheduledAt: at(4)},
		},
		ReplayPoints: []schemas.ReplayPoint{{Name: "paid", EventID: 7, Time: at(5)}},
		Alarm:        at(60), Timeout: at(86400), PausedCause: "DECIDER_ATTEMPTS_EXCEEDED", PausedDetails: "panic: nil map\ngoroutine 1", Input: schemas.Payload(`{"n":1}`),
		LatestContext: schemas.Payload{0xff, 0xfe},
	}
	golden(t, "describe.golden", string(workflows.DescribeText(d, nil, at(90.25).Time())))
	closed := &schemas.DescribeResponse{
		Execution: schemas.ExecutionInfo{WorkflowID: "w", Run: "r", Type: "t", Status: schemas.StatusCompleted, StartedAt: at(0), ClosedAt: at(12), Events: 5},
		Timeout:   at(99), Input: schemas.Payload(`"` + strings.Repeat("long ", 100) + `"`),
		Children: []schemas.OpenChild{{WorkflowID: "w-1", Run: "c", Type: "kid", ScheduledAt: at(1), Started: true, Policy: schemas.ChildTerminate}},
	}
	golden(t, "describe-closed.golden", string(workflows.DescribeText(closed, nil, time.Now())))

	s := newService(t)
	on(s, "describe", func(schemas.ExecutionRequest) any { return d })
	r := s.drover("", "describe", "order-17", "--json")
	r.want(t, cli.ExitDone, r.stdout)
	golden(t, "describe.json.golden", r.stdout)
	if r := s.drover("", "describe", "order-17"); r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "workflow ") {
		t.Fatalf("got %d %q", r.code, r.stdout)
	}
}

// sample is a history with an event of every shape that the timeline treats.
func sample() []schemas.Event {
	attrs := []schemas.Attributes{
		&schemas.WorkflowStarted{WorkflowID: "order-17", Run: "r1", WorkflowType: "order", WorkflowTypeVersion: "2", Input: schemas.Payload(`{"n":1}`), ExecutionStartToCloseTimeout: schemas.Seconds(3600), TagList: []string{"x", "y z"}, Attributes: map[string]string{"k": "v"}, Identity: "host:1", ParentWorkflowExecution: &schemas.Execution{WorkflowID: "parent 1", Run: "r0"}},
		&schemas.DeciderScheduled{StartToCloseTimeout: schemas.Seconds(10), Attempt: 1},
		&schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3, Identity: "decider:1", ExecutionContext: make([]byte, 2048), ReplyDigest: "abc"},
		&schemas.ActivityScheduled{ActivityID: "charge-1", ActivityType: "charge", List: "PCI", Input: schemas.Payload("12"), NotIdempotent: true, Retry: &schemas.RetryPolicy{MaximumAttempts: 3}, DeciderCompletedEventID: 4},
		&schemas.TimerScheduled{TimerID: "too late", StartToFireTimeout: schemas.Seconds(60), DeciderCompletedEventID: 4},
		&schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 1, Identity: "worker:1", TaskSequence: 9, Nonce: "n"},
		&schemas.ActivityFailed{ScheduledEventID: 5, StartedEventID: 7, Reason: "no\x1b[31m money", Details: schemas.Payload("broke")},
		&schemas.Signal{SignalName: "ready", Input: schemas.Payload("1"), RequestID: "q"},
		&schemas.Unknown{Type: "FromTheFuture", Raw: []byte("\x81\xa1a\x01")},
		&schemas.TimerExpired{TimerID: "too late", ScheduledEventID: 6},
		&schemas.ActivityRetryScheduled{ScheduledEventID: 5, Attempt: 1, NextTime: at(70)},
		&schemas.WorkflowCloseFailed{Decision: "CompleteWorkflow", Cause: schemas.CauseUnhandledDecision, DeciderCompletedEventID: 4},
		&schemas.WorkflowTimedOut{TimeoutType: schemas.TimeoutStartToClose},
	}
	offsets := []float64{0, 0, 0.0124, 0.5, 0.5, 0.5, 1, 59.9999, 61.5, 3600, 3661, 86399, 86400, 200000}
	events := make([]schemas.Event, len(attrs))
	for i, a := range attrs {
		events[i] = schemas.Event{ID: int64(i + 1), Time: at(offsets[i]), Attributes: a}
	}
	return events
}

func TestHistory(t *testing.T) {
	s := newService(t)
	all := sample()
	on(s, "history", func(req schemas.HistoryRequest) any {
		end := min(int(req.After)+5, len(all))
		if req.Wait == 0 {
			end = len(all)
		}
		return schemas.HistoryResponse{Run: "r1", Events: all[req.After:end], Closed: end == len(all)}
	})
	r := s.drover("", "history", "order-17")
	r.want(t, cli.ExitDone, r.stdout)
	golden(t, "history.golden", r.stdout)
	s.drover("", "history", "order-17", "--follow").want(t, cli.ExitDone, r.stdout)

	// The JSON form is a contract: one event a line with exactly these keys.
	all = all[:3]
	s.drover("", "history", "order-17", "--json", "--run", "r1").want(t, cli.ExitDone, strings.Join([]string{
		`{"id":1,"type":"WorkflowStarted","time":"2026-01-02T03:04:05Z","attributes":{"workflowId":"order-17","run":"r1","workflowType":"order","workflowTypeVersion":"2","input":{"n":1},"executionStartToCloseTimeout":3600,"tagList":["x","y z"],"attributes":{"k":"v"},"parentWorkflowExecution":{"workflowId":"parent 1","run":"r0"},"identity":"host:1"}}`,
		`{"id":2,"type":"DeciderScheduled","time":"2026-01-02T03:04:05Z","attributes":{"startToCloseTimeout":10,"attempt":1}}`,
		`{"id":3,"type":"DeciderStarted","time":"2026-01-02T03:04:05.0124Z","attributes":{"scheduledEventId":2}}`,
		"",
	}, "\n"))
}

// Every event type has a line: one line, no control characters, no attribute that is quiet.
func TestTimelineOfEveryEventType(t *testing.T) {
	for _, typ := range schemas.EventTypes() {
		e := schemas.Event{ID: 1, Time: at(0)}
		raw := `{"id":1,"type":"` + string(typ) + `","time":"2026-01-02T03:04:05Z","attributes":{"identity":"a\nb","reason":"a\u001bb","deciderCompletedEventId":4}}`
		if err := e.UnmarshalJSON([]byte(raw)); err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		line := strings.TrimSuffix(new(workflows.Timeline).Print(e), "\n")
		if strings.ContainsAny(line, "\n\x1b") || strings.Contains(line, "deciderCompleted") || !strings.Contains(line, string(typ)) {
			t.Fatalf("%s: got %q", typ, line)
		}
		if len(typ) > workflows.WidestType {
			t.Fatalf("%s has %d letters: raise widestType", typ, len(typ))
		}
	}
}

// Bad input: whatever a history holds, its line is one line without control characters.
func FuzzTimeline(f *testing.F) {
	for _, e := range sample() {
		b, err := e.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"id":9,"type":"a\u001b\nb","attributes":"\u009b1m"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e schemas.Event
		if e.UnmarshalJSON(b) != nil {
			return
		}
		line := strings.TrimSuffix(new(workflows.Timeline).Print(e), "\n")
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
			t.Fatalf("%q: got %q", b, line)
		}
	})
}
