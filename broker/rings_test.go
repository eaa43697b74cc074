package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
)

const sleepMinute = `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":60}}]`

func sleeper(d *decisionTask) string {
	switch {
	case d.has("TimerExpired"):
		return complete
	case d.has("TimerScheduled"):
		return "[]"
	}
	return sleepMinute
}

// Alarms that are due ring without a message in the inbox, and are deleted.
func TestRingsGoToTheOwner(t *testing.T) { // P-10, P-15
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var rings, inbox atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			switch {
			case subj == ns.Owner(0):
				rings.Add(1)
			case strings.HasPrefix(subj, "drover.default.in.0."):
				inbox.Add(1)
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.CachedRuns = 40 })
		f.decider("order", sleeper)
		const n = 30
		for i := range n {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"order"}`, i))
		}
		time.Sleep(70 * time.Second)
		for i := range n {
			if got := f.result(fmt.Sprintf("w%d", i)); got != "completed" {
				t.Fatalf("w%d: %s", i, got)
			}
		}
		time.Sleep(10 * time.Second)
		if got := f.alarms(); got != 0 || rings.Load() == 0 || inbox.Load() != 0 {
			t.Errorf("got %d alarms, %d messages of rings, %d in the inbox; want 0, some, 0", got, rings.Load(), inbox.Load())
		}
	})
}
