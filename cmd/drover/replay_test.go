package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
)

func shipPlan() *schemas.ReplayPlan {
	return &schemas.ReplayPlan{From: "3", Again: []schemas.ReplayStep{{Ref: "3", Name: "ship", Type: "activity", NotIdempotent: true}, {Ref: "4", Type: "let"}}}
}

func TestReplay(t *testing.T) {
	s := newService(t)
	var got schemas.ReplayRequest
	answer := schemas.ReplayResponse{WorkflowID: "a", Run: "r2", Replays: "r1", Started: true, Plan: shipPlan()}
	on(s, "replay", func(q schemas.ReplayRequest) any { got = q; return answer })
	on(s, "replayForce", func(q schemas.ReplayRequest) any { got = q; got.Reason += " by force"; return answer })
	again := "what has run and runs again:\n  3 (ship, activity), which may not simply run twice\n  4 (let)\n"
	s.drover("", "replay", "a", "--run", "r1", "--from", "ship", "--reason", "mended", "--request-id", "q").
		want(t, cli.ExitDone, "replayed run r1 of a as run r2, at step 3\n"+again)
	want := schemas.ReplayRequest{V: 1, WorkflowID: "a", Run: "r1", From: "ship", RequestID: "q", Reason: "mended", Identity: got.Identity}
	if diff := cmp.Diff(want, got); diff != "" || got.Identity == "" {
		t.Fatalf("identity %q %s", got.Identity, diff)
	}
	s.drover("", "replay", "a", "--force", "-o", "json").want(t, cli.ExitDone,
		`{"workflowId":"a","run":"r2","replays":"r1","started":true,"plan":{"from":"3","again":[{"ref":"3","name":"ship","type":"activity","notIdempotent":true},{"ref":"4","type":"let"}]}}`+"\n")
	if got.Reason != " by force" || got.From != "" || got.RequestID == "" {
		t.Fatalf("got %+v", got)
	}
	answer.Run, answer.Started = "", false
	s.drover("", "replay", "a", "--dry-run").want(t, cli.ExitDone, "run r1 of a would begin at step 3\n"+again)
	if !got.DryRun {
		t.Fatalf("got %+v", got)
	}
	answer = schemas.ReplayResponse{Run: "r1", Replays: "r1", Plan: &schemas.ReplayPlan{From: "end"}}
	s.drover("", "replay", "a").want(t, cli.ExitDone, "nothing is left to run of a run r1: it has completed\n")
	answer = schemas.ReplayResponse{Run: "r2", Replays: "r1", Plan: shipPlan()}
	s.drover("", "replay", "a", "--request-id", "q").want(t, cli.ExitDone, "run r2 of a was begun by this request before\n"+again)
	answer = schemas.ReplayResponse{Run: "r2"}
	s.drover("", "replay", "a", "--request-id", "q").want(t, cli.ExitDone, "run r2 of a was begun by this request before\n")
	answer.Error = schemas.Errorf(schemas.CodeConflict, "the flow says replayable: disabled").WithHint("use --force")
	s.drover("", "replay", "a").want(t, cli.ExitFailed, "", "replayable: disabled", "use --force")
}

func TestReplayUsage(t *testing.T) {
	s := newService(t)
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"ID is missing", []string{"replay"}},
		{"is too much", []string{"replay", "a", "--query", "status=failed"}},
		{"--run and --request-id are for a single workflow", []string{"replay", "--query", "status=failed", "--run", "r"}},
		{"--limit needs --query", []string{"replay", "a", "--limit", "3"}},
		{"--limit is 0", []string{"replay", "--query", "type=a", "--limit", "0"}},
		{"the query is empty", []string{"replay", "--query", " "}},
		{`no filter "colour": use one of closed-after,`, []string{"replay", "--query", "colour=red"}},
		{`"failed" is no filter`, []string{"replay", "--query", "failed"}},
		{"status stands twice", []string{"replay", "--query", "status=failed status=open"}},
		{`--status is "done"`, []string{"replay", "--query", "status=done"}},
		{"filter closed-after", []string{"replay", "--query", "closed-after=soon"}},
		{"has no end", []string{"replay", "--query", `tag="a`}},
		{"reason: 1025 bytes; want at most 1024", []string{"replay", "a", "--reason", strings.Repeat("x", 1025)}},
	} {
		if r := s.drover("", tt.args...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, tt.want) || r.stdout != "" {
			t.Errorf("%v: exit %d, %s; want %d and %q", tt.args, r.code, r.stderr, cli.ExitUsage, tt.want)
		}
	}
}

func TestReplayOfAQuery(t *testing.T) {
	s := newService(t)
	all := []schemas.ExecutionInfo{
		{WorkflowID: "good", Run: "r1", Status: schemas.StatusFailed},
		{WorkflowID: "done", Run: "r2", Status: schemas.StatusCompleted},
		{WorkflowID: "kid", Run: "r3", Status: schemas.StatusFailed, Parent: &schemas.Execution{WorkflowID: "good"}},
		{WorkflowID: "old", Run: "r4", Status: schemas.StatusTimedOut},
		{WorkflowID: "bad", Run: "r5", Status: schemas.StatusCanceled},
		{WorkflowID: "still", Run: "r6", Status: schemas.StatusTerminated},
		{WorkflowID: "more", Run: "r7", Status: schemas.StatusFailed},
	}
	var list schemas.ListRequest
	on(s, "list", func(q schemas.ListRequest) any {
		list = q
		return schemas.ListResponse{Executions: slices.DeleteFunc(slices.Clone(all), func(e schemas.ExecutionInfo) bool {
			return q.Status != schemas.StatusClosed && q.Status != e.Status
		})}
	})
	var asked []schemas.ReplayRequest
	on(s, "replay", func(q schemas.ReplayRequest) any {
		asked = append(asked, q)
		a := schemas.ReplayResponse{WorkflowID: q.WorkflowID, Replays: q.Run, Run: "new", Started: true, Plan: shipPlan()}
		switch q.WorkflowID {
		case "old":
			a.Error = schemas.Errorf(schemas.CodeConflict, "run r4 is not the latest").InField("run")
		case "done":
			a.Run, a.Started, a.Plan = q.Run, false, &schemas.ReplayPlan{From: "end"}
		case "bad":
			a.Error = schemas.Errorf(schemas.CodeConflict, "there is no replay point").InField("from")
		}
		if q.DryRun || a.Error != nil {
			a.Run, a.Started = "", false
		}
		return a
	})
	r := s.drover("", "replay", "--query", `type="an order" closed-before=2026-01-02`, "--from", "last", "--limit", "3", "--reason", "mended")
	summary := []string{
		"2 replayed, 2 skipped, 0 with nothing to do, 1 refused", "more than 3", "1 workflow was refused, of 5",
	}
	for _, want := range summary {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("want %q in\n%s", want, r.stderr)
		}
	}
	if r.code != cli.ExitFailed || list.Type != "an order" || list.ClosedBefore == 0 || list.Status != schemas.StatusClosed {
		t.Errorf("exit %d, list %+v", r.code, list)
	}
	wantTable(t, r.stdout, []string{
		"ID RUN OUTCOME NEW RUN BEGINS MAY NOT SIMPLY RUN TWICE",
		"good r1 replayed new at step 3 3 (ship, activity)",
		"kid r3 skipped - a child: replay good -",
		"old r4 skipped - run r4 is not the latest -",
		"bad r5 refused - there is no replay point -",
		"still r6 replayed new at step 3 3 (ship, activity)",
	})
	for _, q := range asked {
		if !q.LatestOnly || q.RequestID == "" || q.From != "last" || q.Reason != "mended" || q.Run == "" {
			t.Errorf("asked %+v", q)
		}
	}
	r = s.drover("", "replay", "--query", "status=completed")
	wantTable(t, r.stdout, []string{
		"ID RUN OUTCOME NEW RUN BEGINS MAY NOT SIMPLY RUN TWICE", "done r2 nothing to do - at the end, with nothing left to run -",
	})
	if r.code != cli.ExitDone || !strings.Contains(r.stderr, "0 replayed, 0 skipped, 1 with nothing to do, 0 refused") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	asked = nil
	r = s.drover("", "replay", "--query", "status=failed", "--dry-run", "--json")
	var outcomes []string
	for line := range strings.Lines(r.stdout) {
		var l workflows.ReplayLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		outcomes = append(outcomes, l.WorkflowID+": "+l.Outcome)
	}
	if diff := cmp.Diff([]string{"good: would replay", "kid: skipped", "more: would replay"}, outcomes); diff != "" || r.code != cli.ExitDone || r.stderr != "" {
		t.Errorf("exit %d %s %s", r.code, r.stderr, diff)
	}
	for _, q := range asked {
		if !q.DryRun {
			t.Errorf("a dry run has asked for %+v", q)
		}
	}
}

// Repeating a query comes to those that were after the limit: what was replayed before is skipped, and does not count.
func TestReplayOfAQueryAgain(t *testing.T) {
	s := newService(t)
	runs := []schemas.ExecutionInfo{{WorkflowID: "kid", Run: "r0", Status: schemas.StatusFailed, Parent: &schemas.Execution{WorkflowID: "w1"}}}
	for i := range 5 {
		runs = append(runs, schemas.ExecutionInfo{WorkflowID: fmt.Sprint("w", i), Run: fmt.Sprint("r", i), Status: schemas.StatusFailed})
	}
	on(s, "list", func(schemas.ListRequest) any { return schemas.ListResponse{Executions: runs} })
	latest := map[string]string{}
	on(s, "replay", func(q schemas.ReplayRequest) any {
		if run := latest[q.WorkflowID]; run != "" {
			return schemas.ReplayResponse{Error: schemas.Errorf(schemas.CodeConflict, "run %s is not the latest", q.Run).InField("run")}
		}
		latest[q.WorkflowID] = q.Run + "-again"
		return schemas.ReplayResponse{WorkflowID: q.WorkflowID, Replays: q.Run, Run: q.Run + "-again", Started: true, Plan: shipPlan()}
	})
	for i, want := range []struct {
		replayed int
		more     bool
	}{{2, true}, {4, true}, {5, false}, {5, false}} {
		r := s.drover("", "replay", "--query", "status=failed", "--limit", "2", "--json")
		if r.code != cli.ExitDone || len(latest) != want.replayed || strings.Contains(r.stderr, "--limit") != want.more {
			t.Errorf("time %d: got %+v and %d replayed, want %+v", i+1, r, len(latest), want)
		}
	}
}

// wantTable compares a table whatever its columns' widths.
func wantTable(t *testing.T, got string, want []string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(got) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDescribeAttempts(t *testing.T) {
	got := string(workflows.DescribeText(&schemas.DescribeResponse{Attempts: []schemas.ReplayAttempt{
		{Run: "r1", StartedAt: at(0), ClosedAt: at(1), Status: schemas.StatusFailed},
		{Run: "r2", StartedAt: at(2), Status: schemas.StatusOpen, Replays: &schemas.ReplayOf{Run: "r1", From: "ship", Force: true, Reason: "mended", Identity: "ann"}},
	}}, nil, at(3).Time()))
	_, table, ok := strings.Cut(got, "\nattempts\n")
	if !ok {
		t.Fatalf("no attempts in\n%s", got)
	}
	wantTable(t, table, []string{
		"RUN REPLAYS FROM BY STARTED CLOSED STATUS REASON",
		"r1 - initial run - 2026-01-02 03:04:05.000Z 2026-01-02 03:04:06.000Z failed -",
		"r2 r1 ship, forced ann 2026-01-02 03:04:07.000Z - open mended",
	})
}
