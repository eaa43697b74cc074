package broker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
)

// The outcome of an activity must not end as a dead letter because a run that was marked was forgotten in the same batch of the loop.
func TestMarkedRunIsNotForgotten(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 4 })
		const n = 20
		f.starts(n)
		time.Sleep(25 * time.Second)
		var mu sync.Mutex
		asked := map[string]int{}
		f.decider("order", func(d *decisionTask) string {
			mu.Lock()
			k := fmt.Sprint(d.WorkflowID, " ", d.StartedID)
			asked[k]++
			again := asked[k] > 1
			mu.Unlock()
			if again {
				return "" // thinks longer this time
			}
			if d.has("ActivitySuccess") {
				return complete
			}
			return "[" + scheduleActivity("a", "") + "]"
		})
		a.broker.Busy(0, 5*time.Millisecond)
		time.Sleep(time.Millisecond)
		f.tell("drover.default.announce.order", `{"v":1}`)
		time.Sleep(time.Millisecond)
		for i := range n {
			f.tell(ns.API("start"), fmt.Sprintf(`{"workflowId":"x%d","type":"other"}`, i))
		}
		time.Sleep(time.Second)
		for range n {
			f.pull().success()
		}
		time.Sleep(5 * time.Minute)
		open := 0
		for i := range n {
			if s := f.result0(fmt.Sprintf("w%d", i)); s != "completed" {
				open++
			}
		}
		twice := 0
		for _, c := range asked {
			if c > 1 {
				twice++
			}
		}
		if dead := f.dead(); open > 0 || twice > 0 || len(dead) > 0 {
			t.Errorf("%d of %d runs did not end, %d decisions were asked for twice, dead letters: %v", open, n, twice, dead)
		}
	})
}
