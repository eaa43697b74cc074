package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// signalsOf are the names of the signals in the history of "o".
func (f *fleet) signalsOf() []string {
	f.t.Helper()
	var names []string
	for _, e := range f.events("o") {
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
