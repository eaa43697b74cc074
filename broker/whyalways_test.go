package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Why of the last run of an always-on workflow tells when the next one begins, or why none does (S2-3).
func TestWhyOfAnAlwaysOnWorkflow(t *testing.T) {
	soon := ops.AlwaysOnRecord{Failures: ops.FailingAfter, Status: schemas.StatusFailed}
	few := soon
	few.Failures = 2
	few.Refusal = "the type is deprecated"
	stopped := ops.AlwaysOnRecord{Stopped: true, StoppedBy: "ann", Reason: "maintenance"}
	open := soon
	open.Open = true
	completed := ops.AlwaysOnRecord{Status: schemas.StatusCompleted}
	ended := completed
	ended.AlwaysOn.Restart = ops.RestartOnFailure
	const closed = "it is closed: failed at T, reason: no money"
	for _, tc := range []struct {
		name   string
		mode   string
		record *ops.AlwaysOnRecord
		want   string
	}{
		{"failing", "AutoStart", &soon, closed + "; the always-on workflow has failed 10 times in a row, it is failing; it is started again at T, or at once with: drover always-on start o"},
		{"refused", "AutoStart", &few, closed + "; the always-on workflow has failed 2 times in a row; the last start was refused: the type is deprecated; it is started again at T, or at once with: drover always-on start o"},
		{"stopped", "AutoStart", &stopped, closed + "; the always-on workflow was stopped by ann (maintenance): drover always-on start o"},
		{"nothing has failed", "AutoStart", &completed, closed + "; the always-on workflow is started again at T"},
		{"ended", "AutoStart", &ended, closed + "; the always-on workflow begins again only after failures, or with: drover always-on start o"},
		{"the next one runs", "AutoStart", &open, closed},
		{"removed", "AutoStart", nil, closed},
		{"another start", "Manual", &stopped, closed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.node("a", nil)
				f.decider("order", when("WorkflowStarted", `[{"type":"FailWorkflow","attributes":{"reason":"no money"}}]`))
				f.start(strings.Replace(startO, "{", `{"startMode":"`+tc.mode+`",`, 1))
				f.result("o")
				if r := tc.record; r != nil {
					r.V, r.AlwaysOn.Start.WorkflowID, r.AlwaysOn.Start.Type = schemas.Version, "o", "order"
					if waits := r.Failures > 0 || r == &completed; waits {
						r.NotBefore = schemas.At(time.Now().Add(5 * time.Minute))
					}
					body, err := schemas.MarshalJSON(r)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := f.post.KVCreate(t.Context(), ns.BucketSchedules(), "always.o", body, 0); err != nil {
						t.Fatal(err)
					}
				}
				if got := f.why("o"); got != tc.want {
					t.Errorf("got  %s\nwant %s", got, tc.want)
				}
				if tc.record != &stopped || tc.mode != "AutoStart" {
					return
				}
				time.Sleep(time.Hour) // the owner has forgotten the run by then
				if got := f.why("o"); got != tc.want {
					t.Errorf("an hour later: got  %s\nwant %s", got, tc.want)
				}
			})
		})
	}
}
