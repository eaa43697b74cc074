package audit

import (
	"fmt"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// More faults than one pass sees to are not forgotten: they count as wrong until another one has.
func TestFaultsBeyondOnePass(t *testing.T) {
	s := &suspects{most: 10, found: map[string]Finding{}}
	for i := range maxSuspects + 7 {
		s.add(Finding{Kind: KindTaskMissing, Severity: Fault, WorkflowID: fmt.Sprint(i)})
	}
	r := &Report{}
	for _, f := range s.found {
		f.Repaired = true
		r.add(f, 10)
	}
	r.leave(s.left)
	if got := r.Wrong(); len(s.found) != maxSuspects || got != 7 || r.More[KindTaskMissing] != maxSuspects-10+7 {
		t.Errorf("got %d found, %d wrong and %d more, want %d, 7 and %d", len(s.found), got, r.More[KindTaskMissing], maxSuspects, maxSuspects-10+7)
	}
}

// U3: runs that stand still until somebody mends their decider are a warning, counted beyond those that are listed.
func TestParkedRunsAreWarnings(t *testing.T) {
	s := &suspects{most: 10, found: map[string]Finding{}}
	for i := range 25 {
		run := &schemas.AuditRun{WorkflowID: fmt.Sprint(i), Run: "r", Type: "order", PausedCause: schemas.CauseDeciderAttempts, PausedReason: "it panicked"}
		(&Auditor{}).judgeWaits(&view{}, 0, run, Finding{WorkflowID: run.WorkflowID, Run: run.Run}, s)
	}
	r := &Report{}
	for _, f := range s.found {
		r.add(f, 10)
	}
	for kind, n := range s.more {
		r.more(kind, n)
	}
	if len(r.Findings) == 0 || r.Findings[0].Severity != Warning || r.Warnings() != 25 || !r.OK() {
		t.Errorf("got %d warnings of %+v, want 25", r.Warnings(), r.Findings)
	}
}
