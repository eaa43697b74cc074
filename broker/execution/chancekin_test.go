package execution

import "github.com/droverhq/drover/schemas"

// What other workflows and operators do to the run of a game.

var others = []schemas.Execution{{WorkflowID: "other", Run: "x1"}, {WorkflowID: "another", Run: "y1"}}

func (g *game) otherSignal() Signal {
	x := &schemas.ExternalSignal{
		Run: pick(g.d, "", "", "", "run.1", "run.9"), Name: "x", Source: pick(g.d, others...), ScheduledEventID: int64(5 + g.d.roll(3)),
	}
	return Signal{Name: x.Name, Input: x.Input, External: x}
}

// request is a cancel or terminate request: of an operator, of another workflow, or of a parent that has ended.
func (g *game) request() Message {
	q := &schemas.ExecutionRequest{
		WorkflowID: "order", Run: pick(g.d, "", "run.1", "run.1", "run.9"), RequestID: pick(g.d, "", "c1", "c2", "c3"), ChildPolicy: pick(g.d, policies...),
	}
	source := pick(g.d, others...)
	switch g.d.roll(4) {
	case 0:
		q.Origin = &schemas.RequestOrigin{Execution: &source, ScheduledEventID: int64(8 + g.d.roll(3)), FirstRun: q.Run}
	case 1:
		q.Origin = &schemas.RequestOrigin{Execution: &source, Cause: schemas.CauseChildPolicyApplied, FirstRun: q.Run}
	case 2:
		q.Origin = &schemas.RequestOrigin{FirstRun: "run.1"}
	}
	if g.d.roll(8) == 0 {
		return Terminate{Request: q}
	}
	return Cancel{Request: q}
}

// childReport is of an open child, of one that was, or of none.
func (g *game) childReport() *schemas.ChildReport {
	r := &schemas.ChildReport{ParentRun: pick(g.d, "run.1", "run.1", "run.1", "run.9"), ScheduledEventID: int64(g.d.roll(40))}
	if open := g.lived.OpenChildren(); len(open) > 0 && g.d.roll(8) > 0 {
		c := open[g.d.roll(len(open))]
		r.ScheduledEventID, r.Child = c.ScheduledID, schemas.Execution{WorkflowID: c.Scheduled.WorkflowID, Run: c.Scheduled.Run}
	}
	switch g.d.roll(5) {
	case 0:
		r.Cause = schemas.CauseWorkflowRunning
	case 1, 2:
		r.Status = schemas.StatusOpen
	default:
		r.Status = pick(g.d, schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled, schemas.StatusTimedOut, schemas.StatusTerminated, "noise")
	}
	return r
}

// externalAnswer is for an open errand, for one that was, or for none.
func (g *game) externalAnswer() *schemas.ExternalAnswer {
	a := &schemas.ExternalAnswer{
		SourceRun: pick(g.d, "run.1", "run.1", "run.1", "run.9"), ScheduledEventID: int64(g.d.roll(40)), Cause: pick(g.d, "", "", schemas.CauseUnknownExecution),
	}
	if open := g.lived.OpenExternals(); len(open) > 0 && g.d.roll(8) > 0 {
		a.ScheduledEventID = open[g.d.roll(len(open))].ScheduledID
	}
	if x := g.lived.Externals[a.ScheduledEventID]; x != nil {
		_, target, _ := g.lived.RequestOf(x)
		a.Target = schemas.Execution{WorkflowID: target, Run: "r"}
	}
	return a
}
