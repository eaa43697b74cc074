package broker_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A signal of which it is being looked up whether it is a repeat, while the decider has the run continue as new, is in the
// next run, also if others came after it.
func TestContinuesWhileARepeatIsLookedFor(t *testing.T) { // P-4, P-6, S2-6
	virtually(t, 1, func(t *testing.T, f *fleet) {
		decide := make(chan struct{})
		f.decider("order", func(d *decisionTask) string {
			answer := nexts(d)
			if strings.Contains(answer, "ContinueAsNew") {
				<-decide
			}
			return answer
		})
		a := f.node("a", nil)
		f.start(strings.Replace(startO, "{", `{"taskStartToCloseTimeout":"1h",`, 1))
		f.others("first", 1100)
		if !f.until(time.Minute, func() bool { return len(f.chainOf("o").ids) == 1100 }) {
			t.Fatal("the signals are not in the history")
		}
		f.publish("drover.default.signal.o.next", "")
		time.Sleep(time.Second) // until the decision has begun
		a.kill()
		var armed atomic.Bool
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			if strings.Contains(subj, "GET."+ns.StreamHistory(0)) && armed.CompareAndSwap(true, false) {
				close(decide)
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		time.Sleep(20 * time.Second) // until b owns the partition, and has asked
		armed.Store(true)
		for _, id := range []string{"pay-1", "pay-2", "pay-3"} {
			f.signalWith(schemas.RequestIDHeader, id, "pay")
		}
		f.until(time.Minute, func() bool { return f.chainOf("o").ids["pay-3"] > 0 })
		c := f.chainOf("o")
		if armed.Load() || len(c.runs) != 2 {
			t.Fatalf("nothing was looked up: %t, or the run has not continued: %v", armed.Load(), c.runs)
		}
		for _, id := range []string{"pay-1", "pay-2", "pay-3"} {
			if c.ids[id] != 1 {
				t.Errorf("%s counts %d times, want once", id, c.ids[id])
			}
		}
	})
}
