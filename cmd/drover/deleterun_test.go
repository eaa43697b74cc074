package main

import (
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func TestDeleteCommand(t *testing.T) {
	s := newService(t)
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: "r2", Status: schemas.StatusCompleted}}
	})
	var asked ops.DeleteRequest
	on(s, "delete", func(q ops.DeleteRequest) any {
		asked = q
		switch q.WorkflowID {
		case "open":
			return ops.DeleteResponse{Error: schemas.Errorf(schemas.CodeConflict, "run r2 is open").WithHint("end it first")}
		case "soft":
			return ops.DeleteResponse{WorkflowID: "soft", Run: q.Run, Runs: 1, Soft: true}
		}
		return ops.DeleteResponse{V: schemas.Version, WorkflowID: q.WorkflowID, Run: q.Run, Runs: 3}
	})
	s.drover("", "delete", "a", "--reason", "wrong").want(t, cli.ExitDone, "deleted a run r2 and 2 runs that go with it\n")
	if asked.Run != "r2" || asked.Reason != "wrong" || asked.Identity == "" {
		t.Errorf("asked %+v", asked)
	}
	s.drover("", "delete", "a", "--run", "r1", "--json").want(t, cli.ExitDone, `{"workflowId":"a","run":"r1","runs":3}`+"\n")
	s.drover("", "delete", "soft").want(t, cli.ExitDone, "deleted soft run r2, which was in the memory of the master only\n")
	s.drover("", "delete", "open").want(t, cli.ExitFailed, "", "run r2 is open", "end it first")
	s.drover("", "delete").want(t, cli.ExitUsage, "", "ID is missing")
}
