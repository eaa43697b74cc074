package main

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func TestBulkCommands(t *testing.T) {
	s := newService(t)
	var asked ops.QueryRequest
	on(s, "query", func(q ops.QueryRequest) any {
		asked = q
		a := ops.QueryResponse{V: schemas.Version, Runs: []ops.FoundRun{}}
		for _, id := range []string{"a", "b", "c"} {
			r := ops.FoundRun{ExecutionInfo: schemas.ExecutionInfo{WorkflowID: id, Run: "r-" + id, Type: "order", Status: schemas.StatusOpen, StartedAt: 1}}
			if id == "b" {
				r.Status = schemas.StatusFailed
			}
			a.Runs = append(a.Runs, r)
		}
		return a
	})
	var begun ops.BulkRequest
	on(s, "bulk", func(q ops.BulkRequest) any {
		begun = q
		return ops.BulkResponse{V: schemas.Version, Job: q.Job, Run: "r1"}
	})
	r := s.drover("", "bulk", "cancel", "type = 'order'", "--dry-run")
	for _, want := range []string{"would cancel 3 runs\n", "2     order  open", "1     order  failed", "b   r-b  order  failed  1970"} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in (exit %d)\n%s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	if asked.Query != "type = 'order'" || asked.Filter != "type != 'drover.bulk' AND (parent IS NULL)" || begun.Job != "" {
		t.Errorf("asked %+v, begun %+v", asked, begun)
	}
	r = s.drover("", "bulk", "replay", "type = 'order'", "--all", "--dry-run", "--json")
	if want := `{"action":"replay","runs":3,"groups":[{"type":"order","status":"open","runs":2},{"type":"order","status":"failed","runs":1}],"samples":[`; !strings.HasPrefix(r.stdout, want) {
		t.Errorf("got %s, want %s", r.stdout, want)
	}
	if asked.Filter != "type != 'drover.bulk' AND parent IS NULL" {
		t.Errorf("asked %+v", asked)
	}
	r = s.drover("", "bulk", "signal", "type = 'order'", "note", "--input", "7", "--rate", "9", "--reason", "why", "--yes")
	if r.stdout != begun.Job+" begins; how far it is: drover bulk show "+begun.Job+"\n" {
		t.Errorf("got %s%s", r.stdout, r.stderr)
	}
	if begun.Action != ops.BulkSignal || begun.Name != "note" || string(begun.Input) != "7" || begun.Rate != 9 || begun.Reason != "why" ||
		begun.Filter != "parent IS NULL" || !strings.HasPrefix(begun.Job, "bulk-") {
		t.Errorf("begun %+v", begun)
	}
	s.drover("y\n", "bulk", "delete", "type = 'order'").want(t, cli.ExitUsage, "", "nobody can be asked here", "--dry-run", "--yes")
	s.drover("", "bulk", "delete", "type == 'order'", "--yes").want(t, cli.ExitUsage, "", "the query cannot be read")
	s.drover("", "bulk", "delete", " ", "--yes").want(t, cli.ExitUsage, "", "the query is empty")
	s.drover("", "bulk", "pause", "id = 'a'", "--rate", "0", "--yes").want(t, cli.ExitUsage, "", "--rate is 0")
	s.drover("", "bulk").want(t, cli.ExitUsage, "", "the action is missing")
	s.drover("", "bulk", "burn").want(t, cli.ExitUsage, "", `there is no command "bulk burn"`)
}

func TestBulkShow(t *testing.T) {
	s := newService(t)
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		d := schemas.DescribeResponse{
			Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: "r1", Type: ops.TypeBulk, Status: schemas.StatusOpen, StartedAt: 1},
			Input:     schemas.Payload(`{"action":"delete","query":"type = 'order'","reason":"old","rate":200}`),
		}
		switch q.WorkflowID {
		case "other":
			d.Execution.Type = "order"
		case "new":
		default:
			d.LatestContext = schemas.Payload(`{"v":1,"action":"delete","found":true,"runs":9,"done":4,"nothing":1,"refused":2,"left":2,"rate":50,` +
				`"codes":[{"code":"conflict","count":2}],"refusals":[{"workflowId":"a","run":"r-a","code":"conflict","message":"it is open"}]}`)
		}
		return d
	})
	r := s.drover("", "bulk", "show", "job")
	for _, want := range []string{
		"job            job, open", "does           delete: type = 'order'", "reason         old", "runs           9", "done           4", "nothing to do  1",
		"refused        2", "left           2, at 50 a second", "2 refused with conflict\n  a run r-a: it is open",
	} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in (exit %d)\n%s%s", want, r.code, r.stdout, r.stderr)
		}
	}
	if r := s.drover("", "bulk", "show", "new"); r.code != cli.ExitDone || !strings.Contains(r.stdout, "runs     not looked for yet") {
		t.Errorf("got (exit %d)\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = s.drover("", "bulk", "show", "job", "--json")
	if !strings.HasPrefix(r.stdout, `{"job":"job","run":"r1","status":"open",`) || !strings.Contains(r.stdout, `"state":{"v":1,"action":"delete","found":true,"runs":9,`) {
		t.Errorf("got %s%s", r.stdout, r.stderr)
	}
	s.drover("", "bulk", "show", "other").want(t, cli.ExitFailed, "", "no bulk job")
	s.drover("", "bulk", "rate", "job", "x").want(t, cli.ExitUsage, "", "NUMBER is")
	on(s, "signal", func(q schemas.SignalRequest) any {
		if q.Name != ops.SignalRate || string(q.Input) != "500" || q.WorkflowID != "job" {
			t.Errorf("signaled %+v", q)
		}
		return schemas.SignalResponse{V: schemas.Version, Run: "r1"}
	})
	s.drover("", "bulk", "rate", "job", "500").want(t, cli.ExitDone, "job acts on 500 a second, within a few seconds\n")
}
