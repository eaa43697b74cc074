package check

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/ops/audit"
)

// U3: parked runs have an exit code of their own, and what is worse has its own still.
func TestAuditErrors(t *testing.T) {
	parked := audit.Finding{Kind: audit.KindParked, Severity: audit.Warning}
	for _, tt := range []struct {
		report audit.Report
		code   int
		words  string
	}{
		{audit.Report{Findings: []audit.Finding{{Severity: audit.Notice}}}, cli.ExitDone, ""},
		{audit.Report{Findings: []audit.Finding{parked}}, cli.ExitParked, "1 run is parked"},
		{audit.Report{Findings: []audit.Finding{parked}, More: map[audit.Kind]int{audit.KindParked: 7}}, cli.ExitParked, "8 runs are parked"},
		{audit.Report{Findings: []audit.Finding{parked, {Severity: audit.Fault}}}, cli.ExitFailed, "1 fault is not repaired"},
	} {
		err := auditError(&tt.report)
		if code := cli.ExitCode(err); code != tt.code || tt.words != "" && !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%+v: got %d %v, want %d with %q", tt.report, code, err, tt.code, tt.words)
		}
	}
}
