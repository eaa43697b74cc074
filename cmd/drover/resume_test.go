package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
)

// pausedRuns has runs that are parked, one that somebody has paused, and one that went on meanwhile.
func pausedRuns(t *testing.T) (s *service, list *schemas.ListRequest, resumed *[]string) {
	s, list, resumed = newService(t), &schemas.ListRequest{}, &[]string{}
	on(s, "list", func(q schemas.ListRequest) any {
		*list = q
		var all []schemas.ExecutionInfo
		for _, id := range []string{"hand", "on", "p1", "p2", "gone", "p3"} {
			all = append(all, schemas.ExecutionInfo{WorkflowID: id, Run: "r-" + id, Type: "order", Status: schemas.StatusPaused})
		}
		return schemas.ListResponse{Executions: all}
	})
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		d := schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: q.Run, Status: schemas.StatusPaused}}
		switch q.WorkflowID {
		case "hand":
			d.PausedDetails = "the bank is closed"
		case "on":
			d.Execution.Status = schemas.StatusOpen
		default:
			d.PausedCause, d.PausedDetails = string(schemas.CauseDeciderAttempts), "it panicked"
		}
		return d
	})
	on(s, "resume", func(q schemas.ExecutionRequest) any {
		if q.WorkflowID == "gone" {
			return schemas.AckResponse{Error: schemas.Errorf(schemas.CodeClosed, "it is closed")}
		}
		*resumed = append(*resumed, q.WorkflowID+" "+q.Run+" "+q.Reason)
		return schemas.AckResponse{}
	})
	return s, list, resumed
}

// U3: runs that a bad deploy has parked go on by one command.
func TestResumeOfAQuery(t *testing.T) {
	s, list, resumed := pausedRuns(t)
	r := s.drover("", "resume", "--query", "type=order started-after=2026-01-01", "--dry-run")
	wantTable(t, r.stdout, []string{
		"ID RUN TYPE OUTCOME WHY", "hand r-hand order skipped somebody has paused it: add status=paused to the query", "on r-on order skipped it is open",
		"p1 r-p1 order would resume it panicked", "p2 r-p2 order would resume it panicked", "gone r-gone order would resume it panicked",
		"p3 r-p3 order would resume it panicked",
	})
	if r.code != cli.ExitDone || len(*resumed) > 0 || list.Status != schemas.StatusPaused || list.Type != "order" || list.After == 0 ||
		!strings.Contains(r.stderr, "4 would be resumed, 2 skipped, 0 refused") {
		t.Fatalf("got %+v, %+v, resumed %v", r, list, *resumed)
	}
	r = s.drover("", "resume", "--query", "type=order", "--reason", "mended", "--limit", "2")
	if r.code != cli.ExitDone || !slices.Equal(*resumed, []string{"p1 r-p1 mended", "p2 r-p2 mended"}) || !strings.Contains(r.stderr, "more than 2") {
		t.Fatalf("got %+v, resumed %v", r, *resumed)
	}
	*resumed = nil
	r = s.drover("", "resume", "--query", "type=order status=paused", "--json")
	var got []string
	for line := range strings.Lines(r.stdout) {
		var l workflows.ResumeLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l.WorkflowID+" "+l.Outcome)
	}
	want := []string{"hand resumed", "on skipped", "p1 resumed", "p2 resumed", "gone skipped", "p3 resumed"}
	if r.code != cli.ExitDone || !slices.Equal(got, want) || len(*resumed) != 4 || r.stderr != "" {
		t.Fatalf("got %v %+v, resumed %v", got, r, *resumed)
	}
}

func TestResumeFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"resume", "ID is missing"},
		{"resume a --query type=x", `argument "a" is too much`},
		{"resume --query type=x --run r", "--run is for a single workflow"},
		{"resume a --limit 3", "--limit needs --query"},
		{"resume a --dry-run", "--dry-run needs --query"},
		{"resume --query type=x --limit 0", "--limit is 0"},
		{"resume --query status=failed", "only paused workflows can be resumed"},
		{"resume --query frob=x", `there is no filter "frob"`},
	} {
		command("", strings.Fields(tt.args)...).want(t, cli.ExitUsage, "", tt.want)
	}
}
