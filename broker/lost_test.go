package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// signalsOf are the names of the signals in the history of "o".
func (f *fleet) signalsOf() []string {
	f.t.Helper()
	var names []string
	for _, e := range f.recorded("o") {
		if s, ok := e.Attributes.(*schemas.Signal); ok {
			names = append(names, s.SignalName)
		}
	}
	return names
}

// The history loses its end, and the checkpoint does not: what was consumed by records that are gone is read again, and it is
// said that something was lost.
func TestHistoryLosesItsEnd(t *testing.T) { // P-9
	for name, left := range map[string]func(highest uint64) uint64{
		"more than is written until it is looked": func(uint64) uint64 { return 3 },
		"and our fence stands in the place of it": func(highest uint64) uint64 { return highest - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				f.decider("order", func(*decisionTask) string { return "[]" })
				a := f.node("a", nil)
				f.publish(ns.In(0, "o", "start"), startO)
				var want []string
				for i := range 4 {
					name := fmt.Sprint("s", i)
					f.publish("drover.default.signal.o."+name, "")
					want = append(want, name)
					time.Sleep(time.Second)
				}
				a.stop()
				var highest uint64
				f.checkpoint(func(c *schemas.Checkpoint) { highest = c.History })
				f.truncate(ns.StreamHistory(0), left(highest)) // nothing is left of it, and its numbers are used again
				f.node("b", nil)
				time.Sleep(10 * time.Second)
				if got := f.signalsOf(); !slices.Equal(got, want) {
					t.Fatalf("got signals %v in the history, want each once: %v", got, want)
				}
				if got := f.dead(); !slices.Contains(got, "lost-records") {
					t.Fatalf("got dead letters %v, want one that says what was lost", got)
				}
				f.check()
			})
		})
	}
}

// A checkpoint speaks of effects of records that are gone. Those that take their places have effects of their own: if the owner dies, the
// next one repeats them.
func TestEffectsLaterALostEnd(t *testing.T) { // P-1, P-9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		a := f.node("a", nil)
		f.publish(ns.In(0, "o", "start"), startO)
		for i := range 20 {
			f.publish(fmt.Sprint("drover.default.signal.o.s", i), "")
			time.Sleep(time.Second)
		}
		a.stop()
		f.truncate(ns.StreamHistory(0), 3)
		b := f.node("b", nth(1, "drover.default.task.main.", cutwire.CutBefore))
		time.Sleep(10 * time.Second) // it leaves a checkpoint of its own
		f.decider("work", one(""))
		f.start(`{"workflowId":"w","type":"work"}`)
		b.waitKilled()
		f.node("c", nil)
		f.pull().success()
		f.completes("w")
	})
}
