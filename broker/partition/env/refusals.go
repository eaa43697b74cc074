package env

import (
	"fmt"

	"github.com/droverhq/drover/schemas"
)

// NotFound is the refusal of what is asked of a workflow id that has no run, or not the one named.
func NotFound(wid, run string) *schemas.Error {
	e := schemas.Errorf(schemas.CodeNotFound, "%s", UnknownID(wid))
	if run != "" {
		e = schemas.Errorf(schemas.CodeNotFound, "workflow %q has no run %s", wid, run)
	}
	return e.InField("workflowId").About(wid, run).WithHint("list the ids with: drover list")
}

// UnknownID says that there is no run of a workflow id: what has closed may have been purged since.
func UnknownID(wid string) string {
	return fmt.Sprintf("there is no workflow with the id %q: it was never started, or is purged",
		wid)
}
