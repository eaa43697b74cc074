package timers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/timers"
)

// A worker with timers of the kernel rings what it rings without them: everything, and nothing early. In real time, since they know no other.
func TestKernelTimers(t *testing.T) {
	const alarms = 50
	r := newRig(t)
	stop := r.start(r.workerOn(r.dial(), "n1", func(o *timers.Options) { o.KernelTimers = true }))
	began, due := time.Now(), map[string]time.Time{}
	for i := range alarms {
		wid := fmt.Sprint("w", i)
		due[wid] = began.Add(time.Duration(alarms-i) * 7 * time.Millisecond) // each is due before the one that was waited for
		r.arm(wid, due[wid])
	}
	for range alarms {
		got := r.next()
		want, waited := due[got.wid]
		if !waited || got.at.Before(want) {
			t.Fatalf("%q rang at %v, want each of %d alarms once, and not before %v", got.wid, got.at, alarms, want)
		}
		delete(due, got.wid)
	}
	if err := stop(); err != nil || len(r.rings) > 0 {
		t.Fatalf("%d rings more, and %v, want each alarm to ring once", len(r.rings), err)
	}
}
