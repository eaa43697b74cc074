package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
)

// What is told of a run that is kept softly says so: in a field of the JSON, for people in a line.
func TestSoftRunsAreMarked(t *testing.T) {
	s := newService(t)
	status, soft := schemas.StatusCompleted, true
	on(s, "describe", func(schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: "a", Run: "r1", Type: "t", Status: status, StartedAt: at(0), ClosedAt: at(1), Events: 2}, Soft: soft}
	})
	on(s, "result", func(schemas.ExecutionRequest) any {
		a := schemas.ResultResponse{Run: "r1", Status: status, Soft: soft}
		if status == schemas.StatusCompleted {
			a.Result = schemas.Payload("7")
		} else {
			a.Reason = "broken"
		}
		return a
	})
	on(s, "history", func(schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Events: sample()[:2], Closed: true, Soft: soft}
	})
	on(s, "why", func(schemas.ExecutionRequest) any {
		return schemas.WhyResponse{Run: "r1", Status: status, Because: "it has completed; it is purged from disk, and the master remembers it"}
	})
	on(s, "retention", func(schemas.ExecutionRequest) any {
		return schemas.RetentionResponse{WorkflowID: "a", Run: "r1", Status: status, Because: "Purged from disk.", Soft: soft}
	})
	note := workflows.SoftNote + "\n"
	started := `{"id":1,"type":"WorkflowStarted"`

	r := s.drover("", "describe", "a")
	if r.code != cli.ExitDone || !strings.Contains(r.stdout, "\nsoft       "+note) || r.stderr != "" {
		t.Errorf("describe: got %+v", r)
	}
	if r = s.drover("", "describe", "a", "--json"); r.code != cli.ExitDone || !strings.Contains(r.stdout, `,"soft":true`) || r.stderr != "" {
		t.Errorf("describe --json: got %+v", r)
	}
	if r = s.drover("", "result", "a"); r.code != cli.ExitDone || r.stdout != "7\n" || r.stderr != note {
		t.Errorf("result: got %+v", r)
	}
	s.drover("", "result", "a", "--json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r1","status":"completed","result":7,"soft":true}`+"\n")
	if r = s.drover("", "history", "a"); r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, "    1 ") || r.stderr != note {
		t.Errorf("history: got %+v", r)
	}
	if r = s.drover("", "history", "a", "--json"); r.code != cli.ExitDone || !strings.HasPrefix(r.stdout, started) || r.stderr != note {
		t.Errorf("history --json: got %+v", r)
	}
	if r = s.drover("", "why", "a"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "the master remembers it") {
		t.Errorf("why: got %+v", r)
	}
	if r = s.drover("", "retention", "explain", "a", "--json"); r.code != cli.ExitDone || !strings.Contains(r.stdout, `"soft":true`) {
		t.Errorf("explain: got %+v", r)
	}

	status = schemas.StatusFailed
	s.drover("", "result", "a").want(t, cli.ExitFailed, "", workflows.SoftNote, "broken")
	soft = false
	for _, args := range [][]string{{"describe", "a"}, {"describe", "a", "--json"}, {"result", "a"}, {"result", "a", "--json"}, {"history", "a"}, {"history", "a", "--json"}} {
		if r := s.drover("", args...); strings.Contains(r.stdout+r.stderr, "soft") || strings.Contains(r.stdout+r.stderr, workflows.SoftNote) {
			t.Errorf("%v: got %+v, want no word of soft", args, r)
		}
	}
}

// The history of a replay names the run that it repeats, and that of a run that was replayed the run that repeats it.
func TestHistoryNamesReplays(t *testing.T) {
	s := newService(t)
	on(s, "history", func(q schemas.HistoryRequest) any {
		start := &schemas.WorkflowStarted{WorkflowID: "a", Run: q.Run, WorkflowType: "t"}
		a := schemas.HistoryResponse{Run: q.Run, Closed: true}
		switch q.Run {
		case "old":
			a.ReplayedBy = "new"
		case "new":
			start.Replays = &schemas.ReplayOf{Run: "old", From: "last", Force: true, Reason: "the bank is\nback", Identity: "ann"}
		}
		a.Events = []schemas.Event{{ID: 1, Time: at(0), Attributes: start}}
		return a
	})
	s.drover("", "history", "a", "--run", "old").want(t, cli.ExitDone, "    1      +0.000s  WorkflowStarted           type=t\n                    replayed as run new\n")
	s.drover("", "history", "a", "--run", "new").want(t, cli.ExitDone,
		"    1      +0.000s  WorkflowStarted           type=t replays=old from=last force=true by=ann reason=\"the bank is\\nback\"\n")
	s.drover("", "history", "a", "--run", "other").want(t, cli.ExitDone, "    1      +0.000s  WorkflowStarted           type=t\n")
	for _, run := range []string{"old", "new"} {
		r := s.drover("", "history", "a", "--run", run, "--json")
		if r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != 1 || strings.Contains(r.stdout, `"replays":{"run":"old","from":"last"`) != (run == "new") {
			t.Errorf("%s: got %+v, want one line for each event and nothing else", run, r)
		}
	}
}
