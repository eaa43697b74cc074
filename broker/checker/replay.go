package checker

import "github.com/droverhq/drover/schemas"

// original is what is kept of a run for those that may repeat it.
type original struct {
	closedBy     schemas.EventType // empty if it never closed
	typ, version string
	unkept       bool // its retention was disabled when it closed
}

func (h *History) original() original {
	return original{
		closedBy: h.closedBy, typ: h.link.typ, version: h.link.version, unkept: h.unkept,
	}
}

// keeps takes what the run says of its retention.
func (h *History) keeps(p *schemas.RetentionPolicy) {
	h.unkept = p != nil && p.Disabled
}

// checkReplay checks what a run says of the one that it repeats. One that is not there may be gone
// by its retention: it is noted.
func (w *Workflow) checkReplay(r *schemas.Record, a *schemas.WorkflowStarted) []Violation {
	of := a.Replays
	if of == nil {
		return nil
	}
	var found []Violation
	broken := func(format string, args ...any) { found = append(found, w.violation(RuleReplay, r, format, args...)) }
	if of.Run == "" || of.From == "" {
		broken("the run replays run %q from %q; want both", of.Run, of.From)
	}
	if a.ContinuedExecutionRun != "" || a.ParentWorkflowExecution != nil {
		broken(
			"the run replays run %s, so it continues no run and has no parent; it says run %q and %v",
			of.Run, a.ContinuedExecutionRun, w.current.link.parent)
	}
	before, there := w.past[of.Run]
	switch {
	case of.Run == r.Run:
		broken("the run replays itself")
		return found
	case !there:
		if of.Run != "" {
			w.unfound = append(w.unfound, lostOrigin{r.Run, of.Run})
		}
		return found
	case before.closedBy == "":
		broken("the run replays run %s, which has not ended", of.Run)
	case before.closedBy == schemas.EventWorkflowContinuedAsNew:
		broken("the run replays run %s, which has continued as another one", of.Run)
	case before.closedBy == schemas.EventWorkflowSuccess && of.From == schemas.ReplayFromEnd:
		broken(
			"the run replays run %s from its end, and that has succeeded: nothing is left to run",
			of.Run)
	case before.unkept:
		broken("the run replays run %s, whose retention is disabled", of.Run)
	}
	if a.WorkflowType != before.typ || a.WorkflowTypeVersion != before.version {
		broken(
			"the run is of type %q version %q; run %s, which it replays, is of type %q version %q",
			a.WorkflowType, a.WorkflowTypeVersion, of.Run, before.typ, before.version)
	}
	return found
}

// lostOrigin is a run that repeats one without a record.
type lostOrigin struct{ run, of string }
