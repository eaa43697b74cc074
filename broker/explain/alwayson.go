package explain

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// AlwaysOn is the clause about an always-on workflow of which nothing runs: when the next run
// begins, or why none does. It is empty for what is no always-on workflow (nil).
func AlwaysOn(r *ops.AlwaysOnRecord, now schemas.Timestamp) string {
	switch {
	case r == nil || r.Open:
		return ""
	case r.Stopped:
		return fmt.Sprintf(
			"; the always-on workflow was stopped by %s%s: drover always-on start %s",
			r.StoppedBy,
			reason(r.Reason),
			r.AlwaysOn.Start.WorkflowID,
		)
	case r.AlwaysOn.Restart == ops.RestartOnFailure &&
		(r.Status == schemas.StatusCompleted || r.Status == schemas.StatusCanceled):
		return fmt.Sprintf(
			"; the always-on workflow begins again only after failures, or with: drover always-on start %s",
			r.AlwaysOn.Start.WorkflowID,
		)
	case r.NotBefore > now && r.Failures == 0:
		return fmt.Sprintf("; the always-on workflow is started again at %s", r.NotBefore)
	case r.NotBefore > now:
		failing := ""
		if r.Failures >= ops.FailingAfter {
			failing = ", it is failing"
		}
		if r.Refusal != "" {
			failing += "; the last start was refused: " + r.Refusal
		}
		return fmt.Sprintf(
			"; the always-on workflow has failed %s in a row%s; it is started again at %s, or at once with:"+
				" drover always-on start %s",
			count(r.Failures, "time", "times"),
			failing,
			r.NotBefore,
			r.AlwaysOn.Start.WorkflowID,
		)
	}
	return ""
}
