package retention_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/ops/retention"
)

// An end that no timestamp holds is told in words, and not as a moment in the past.
func TestExplainAnEndFarAway(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		h.run("raw", "long", says{Retention: []string{"106000d"}})
		h.settle()
		h.pass()
		a := h.explain("long", "")
		if a.Goes || a.Until != 0 || !strings.Contains(a.Because, "it goes after 2290-") {
			t.Errorf("got goes %v, until %s: %s; want no until, and words about the year 2290", a.Goes, a.Until, a.Because)
		}
		h.run("raw", "soft", says{Retention: []string{"0 soft 106000d"}, Hash: "soft"})
		h.settle()
		h.pass()
		if a := h.explain("soft", ""); !a.Soft || a.Goes || a.Until != 0 {
			t.Errorf("got %+v, want a soft run without until", a)
		}
	})
}
