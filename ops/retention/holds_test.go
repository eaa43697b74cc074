package retention_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/ops/retention"
)

// S2-11: while starts may be repeated whose runs would begin anew nothing is purged; later it is.
func TestHolds(t *testing.T) {
	holds := true
	live(t, retention.Options{Default: "0", Holds: func() bool { return holds }}, func(h *house) {
		h.run("raw", "a", says{})
		time.Sleep(5 * time.Minute)
		h.settle()
		h.pass()
		h.wantKept("a")
		holds = false
		h.pass()
		h.wantKept("")
	})
}
