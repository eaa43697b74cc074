package retention_test

import (
	"testing"
	"time"

	"github.com/droverhq/drover/ops/retention"
)

// A run that is gone says no more how long others are kept, to the master that has purged it as to the next one.
func TestPolicyGoesWithItsRun(t *testing.T) {
	for _, tc := range []struct{ name, says, others, left string }{
		{"that kept less than the default", "1 hard", "7d", "b c d"},
		{"that kept more than the default", "2 hard", "1", "d"},
		{"that was kept softly for a while", "1 soft 2", "7d", "c d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			live(t, retention.Options{Default: tc.others}, func(h *house) {
				h.run("raw", "a", says{Retention: []string{tc.says}})
				h.Sleep(time.Minute)
				for _, id := range []string{"b", "c", "d"} {
					h.run("raw", id, says{})
					h.settle()
					h.pass()
				}
				h.wantKept(tc.left)
				if got, want := h.explain("d", "").Source, "the default of the namespace"; got != want {
					h.t.Errorf("d is judged by %s, want %s", got, want)
				}
				h.another()
				h.pass()
				h.wantKept(tc.left)
			})
		})
	}
}
