package execution

import (
	"strconv"

	"github.com/droverhq/drover/internal/runid"
	"github.com/droverhq/drover/schemas"
)

// runID mints the id of a run that another run asks for: a child's, or that of a continuation. The
// core has no dice, so what they would give comes from who asks.
func runID(parent string, event int64, at schemas.Timestamp) string {
	return runid.Of(int64(at)/1e6,
		parent+"."+strconv.FormatInt(event, 10)+"."+strconv.FormatInt(int64(at), 10))
}
