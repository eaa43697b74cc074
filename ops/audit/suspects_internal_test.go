package audit

import (
	"fmt"
	"testing"
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
