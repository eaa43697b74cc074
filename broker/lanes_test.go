package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// What an owner writes for itself, and for locks and state keys, does not wait for the loads of runs, however many there are, and slow. (E12)
func TestLoadsDoNotHoldUpWrites(t *testing.T) {
	const many = 200
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", func(*decisionTask) string { return "[]" })
		f.decider("lock", mutex("L", ""))
		f.decider("state", when("StateSet", complete, "WorkflowStarted", "["+stateDecision("SetState", "k", `,"value":1`)+"]"))
		a := f.node("a", nil)
		f.starts(many)
		a.stop()

		var slow atomic.Bool
		var hung, checkpoints atomic.Int64
		f.node("b", func(subj string, body []byte) cutwire.Verdict {
			switch {
			case !slow.Load():
			case strings.HasPrefix(subj, "$KV."+ns.BucketCheckpoints()+"."):
				checkpoints.Add(1)
			case strings.HasPrefix(subj, "$JS.API.DIRECT.GET."+ns.StreamHistory(0)) && strings.Contains(subj+string(body), ".w"),
				strings.HasPrefix(subj, "$JS.API.STREAM.MSG.GET."+ns.StreamHistory(0)) && strings.Contains(string(body), ".w"):
				hung.Add(1)
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"l","type":"lock"}`) // b owns the partition, and has these two in its memory
		f.start(`{"workflowId":"s","type":"order"}`)
		f.until(time.Minute, func() bool { return f.happened("l", schemas.EventLockAcquired) > 0 })
		time.Sleep(5 * time.Second)
		slow.Store(true)
		for i := range many {
			f.tell(ns.API("describe"), fmt.Sprintf(`{"workflowId":"w%d"}`, i))
		}
		time.Sleep(10 * time.Millisecond)
		if hung.Load() == 0 {
			t.Fatal("no load hangs")
		}
		began := time.Now()
		f.signalAsync("l", "end")
		f.start(`{"workflowId":"k","type":"state"}`)
		if !f.until(5*time.Second, func() bool {
			return f.status("l").Closed() && f.lockOf("L", "") == nil && f.status("k").Closed() && checkpoints.Load() > 0
		}) {
			t.Errorf("after %v the lock is %+v, the state key is set: %t, and the checkpoint was written %d times; want them at once, whatever hangs",
				time.Since(began), f.lockOf("L", ""), f.status("k").Closed(), checkpoints.Load())
		}
		slow.Store(false)
	})
}
