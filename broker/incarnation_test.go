package broker_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// An owner that found a new incarnation of a log, and died before a checkpoint of it, leaves records of that incarnation and a
// checkpoint of the one before, whose number is higher. What stands between the two is read.
func TestOwnerDiesBeforeTheFirstCheckpointOfAnIncarnation(t *testing.T) { // P-9
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		inputs := func() (all []string) {
			for _, e := range f.events("o") {
				if s, ok := e.Attributes.(*schemas.Signal); ok {
					all = append(all, string(s.Input))
				}
			}
			return all
		}
		var want []string
		signals := func(from, to int) {
			for i := from; i <= to; i++ {
				f.publish("drover.default.signal.o.s", fmt.Sprint(i))
				want = append(want, fmt.Sprint(i))
			}
		}
		await := func() {
			t.Helper()
			for range 600 {
				if len(inputs()) >= len(want) {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if got := inputs(); !slices.Equal(got, want) {
				t.Fatalf("the history has signals %v, want %v", got, want)
			}
		}
		a := f.node("a", nil)
		f.start(startO)
		signals(1, 5)
		await()
		time.Sleep(2 * time.Second)
		a.stop()
		f.truncate(ns.StreamSignals(), 2)
		signals(6, 6)
		b := f.node("b", noCheckpoints)
		await()
		b.kill()
		signals(7, 9)
		f.node("c", nil)
		await()
	})
}
