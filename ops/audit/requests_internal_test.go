package audit

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A run whose requests are not remembered for ten minutes is told of, and nothing is wrong with the service.
func TestTellsOfForgottenRequests(t *testing.T) { // E1
	s := newSuspects()
	judgeRequests(100e9, &schemas.AuditRun{WorkflowID: "o"}, Finding{}, s)
	judgeRequests(100e9, &schemas.AuditRun{WorkflowID: "o", Status: schemas.StatusCompleted, RequestIDsSince: 40e9}, Finding{}, s)
	judgeRequests(100e9, &schemas.AuditRun{WorkflowID: "o", RequestIDsSince: 40e9}, Finding{WorkflowID: "o"}, s)
	if len(s.found) != 1 {
		t.Errorf("got %+v, want a notice about the third run", s.found)
	}
	for _, f := range s.found {
		if f.Kind != KindRequestsForgotten || f.Severity != Notice || !strings.Contains(f.Text, `workflow "o"`) || !strings.Contains(f.Text, "1m0s") {
			t.Errorf("got %+v, want a notice that names the workflow", f)
		}
	}
}
