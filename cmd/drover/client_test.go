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
	var got schemas.ListRequest
	runs := []schemas.ExecutionInfo{
		{WorkflowID: "order-17", Run: "r1", Type: "order", Status: schemas.StatusOpen, StartedAt: at(0), Events: 17},
		{WorkflowID: "a b\x1b[31m", Run: "r2", Type: "nightly-report", Status: schemas.StatusTimedOut, StartedAt: at(1), ClosedAt: at(3700.5), Events: 1234, Tags: []string{"x"}},
	}
	on(s, "list", func(req schemas.ListRequest) any { got = req; return schemas.ListResponse{Executions: runs} })
	r := s.drover("", "list", "--status", "open", "--type", "order", "--prefix", "o", "--limit", "9")
	r.want(t, cli.ExitDone, r.stdout)
	golden(t, "list.golden", r.stdout)
	if diff := cmp.Diff(schemas.ListRequest{V: 1, Status: schemas.StatusOpen, Type: "order", Prefix: "o", TopLevel: true, Limit: 10}, got); diff != "" {
		t.Fatal(diff)
	}
	r = s.drover("", "list", "--json")
	golden(t, "list.json.golden", r.stdout)

	runs = nil
	s.drover("", "list").want(t, cli.ExitDone, "", "no workflows")
	s.drover("", "list", "--json").want(t, cli.ExitDone, "")
}

func TestListThatBreaksOff(t *testing.T) {
	s := newService(t)
	on(s, "list", func(req schemas.ListRequest) any {
		if req.Cursor != "" {
			return schemas.ListResponse{Error: schemas.Errorf(schemas.CodeInternal, "it broke")}
		}
		return schemas.ListResponse{Executions: []schemas.ExecutionInfo{{WorkflowID: "a", Run: "r1"}}, Cursor: "x"}
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
