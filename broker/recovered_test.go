package broker_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// noAlarms makes an owner arm nothing.
func noAlarms(subj string, _ []byte) cutwire.Verdict {
	if strings.HasPrefix(subj, "drover.default.alarm.0.") {
		return cutwire.Swallow
	}
	return cutwire.Pass
}

const inTenMinutes = `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":600}}]`

// An owner dies before it has armed the alarm of a run, and so does the next one. What that one has read is not done before an alarm covers it, or
// the third would not know of the run, and its timer would never fire.
func TestSecondOwnerDiesBeforeItHasArmed(t *testing.T) { // P-1, P-10
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("quick", func(*decisionTask) string { return complete })
		f.decider("order", func(d *decisionTask) string {
			if d.has("TimerExpired") {
				return complete
			}
			return inTenMinutes
		})
		for _, name := range []string{"a", "b"} {
			n := f.node(name, noAlarms)
			if name == "a" {
				f.start(startO)
				f.await("o", schemas.EventDeciderCompleted)
			} else {
				f.start(`{"workflowId":"other","type":"quick"}`) // there is more in the history, and it is done
				f.completes("other")
				time.Sleep(3 * time.Second)
			}
			n.kill()
		}
		f.node("c", nil)
		time.Sleep(15 * time.Minute) // whoever asks for the run loads it, and that arms
		if got := f.types("o"); !slices.Contains(got, "WorkflowSuccess") {
			t.Errorf("a quarter of an hour after the second death a timer of ten minutes has not fired: %v", got)
		}
	})
}

// Once the alarms of what was open are armed, the next owner need not look at it again.
func TestWhatWasRepeatedIsDone(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("quick", func(*decisionTask) string { return complete })
		f.decider("order", func(*decisionTask) string { return inTenMinutes })
		var armed atomic.Bool
		a := f.node("a", noAlarms)
		f.start(startO)
		f.await("o", schemas.EventDeciderCompleted)
		a.kill()
		f.node("b", func(subj string, body []byte) cutwire.Verdict {
			if noAlarms(subj, body) != cutwire.Pass {
				armed.Store(true)
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"other","type":"quick"}`)
		f.completes("other")
		time.Sleep(10 * time.Second)
		_, last, err := f.post.StreamState(t.Context(), ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		raw, _, err := f.post.KVGet(t.Context(), ns.BucketCheckpoints(), "partition.0")
		if err != nil {
			t.Fatal(err)
		}
		var c schemas.Checkpoint
		if err := schemas.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		if !armed.Load() || c.Effects < last {
			t.Errorf("alarms were armed: %v, and everything is done up to %d, want all %d", armed.Load(), c.Effects, last)
		}
	})
}
