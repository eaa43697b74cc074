package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A record with a decision is lost on its way, as after the death of the leader of the history, and while it is waited for the run's alarm is armed, for
// what that record would have said. The decider must be asked again when its own deadline has passed, not when that alarm rings (P-1).
func TestAlarmOfWhatIsNotInTheHistory(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var lose atomic.Bool
		var lost atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.0.o.") && lose.CompareAndSwap(true, false) {
				lost.Add(1)
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		var asked atomic.Int64
		f.decider("order", func(d *decisionTask) string {
			if asked.Add(1) == 1 {
				time.Sleep(900 * time.Millisecond)
				lose.Store(true)
			}
			return "[" + scheduleActivity("a", "") + "]"
		})
		f.start(startO)
		time.Sleep(10 * time.Minute)
		asks := asked.Load() // whoever looks at the run loads it, and that asks
		if lost.Load() != 1 || asks < 2 {
			t.Errorf("%d records were lost, and the decider was asked %d times in 10 minutes: want it asked again", lost.Load(), asks)
		}
	})
}

// A new owner repeats what it finds open once the backlog is read. What a run that has moved on meanwhile would do is not to be done before that is
// in the history: the record may be lost, and the parent would know of an end that never was.
func TestParentHearsOfNoEndThatNeverWas(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("order", parent)
		var lose atomic.Bool
		var lost, decided, puts atomic.Int64
		f.decider("kid", func(d *decisionTask) string {
			if !d.has("Signal") {
				return "[]"
			}
			if decided.Add(1) == 1 {
				lose.Store(true)
				return complete
			}
			return `[{"type":"FailWorkflow","attributes":{"reason":"changed its mind"}}]`
		})
		a := f.node("a", nil)
		f.start(startO)
		f.await("o", "ChildStarted")
		time.Sleep(300 * time.Millisecond)
		a.kill()
		f.publish("drover.default.in.0.other.act.main", fmt.Sprintf(`{"token":"r.1.1","kind":"success","result":"%s"}`, strings.Repeat("x", 300<<10)))
		f.publish("drover.default.signal.kid.go", "")
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			switch {
			case strings.HasPrefix(subj, "$O.") && puts.Add(1) == 1:
				return cutwire.Late // the object store is slow, and with it the reading of the backlog
			case strings.HasPrefix(subj, "drover.default.history.0.kid.") && lose.CompareAndSwap(true, false):
				lost.Add(1)
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		time.Sleep(time.Minute)
		if got := f.types("o"); lost.Load() != 1 || fmt.Sprint(got[6:7]) != "[ChildFailed]" {
			t.Errorf("%d records were lost, and the parent was told %v of a child that has failed", lost.Load(), got[6:7])
		}
	})
}

// The same of a task: what a decision schedules that is not in the history yet is not among what was found open.
func TestTaskOfADecisionThatNeverWas(t *testing.T) { // P-1
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var lose atomic.Bool
		var lost, decided, puts atomic.Int64
		f.decider("order", func(d *decisionTask) string {
			if d.has("Signal") && decided.Add(1) == 1 {
				lose.Store(true)
				return "[" + scheduleActivity("a", "") + "]"
			}
			return "[]"
		})
		a := f.node("a", nil)
		f.start(startO)
		f.await("o", schemas.EventDeciderCompleted)
		a.kill()
		f.publish("drover.default.in.0.other.act.main", fmt.Sprintf(`{"token":"r.1.1","kind":"success","result":"%s"}`, strings.Repeat("x", 300<<10)))
		f.publish(ns.Signal("o", "go"), "")
		f.node("b", func(subj string, _ []byte) cutwire.Verdict {
			switch {
			case strings.HasPrefix(subj, "$O.") && puts.Add(1) == 1:
				return cutwire.Late // the object store is slow, and with it the reading of the backlog
			case strings.HasPrefix(subj, "drover.default.history.0.o.") && lose.CompareAndSwap(true, false):
				lost.Add(1)
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		if k := f.tryPull(time.Minute); k != nil || lost.Load() != 1 || decided.Load() < 2 {
			t.Errorf("%d records were lost, the decider was asked %d times, and there is task %+v; want none", lost.Load(), decided.Load(), k)
		}
	})
}

// The outcome of an offer has come, and its record is on its way, when the offer expires. The owner and the worker die together before the record is
// stored. The next owner must repeat the task (P-1).
func TestOfferExpiresWhileItsOutcomeIsOnItsWay(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("order", two(""))
		offers := f.idle()
		f.start(startO)
		time.Sleep(3 * time.Second) // the run's alarm is armed
		f.quick()
		k := f.opened(<-offers)
		time.Sleep(500 * time.Millisecond)
		a.wire.Judge(func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "drover.default.history.") {
				return cutwire.Swallow // the leader of the history is away
			}
			return cutwire.Pass
		})
		m := &nats.Msg{
			Subject: direct(k.Beat), Reply: f.nc.NewInbox(),
			Data: fmt.Appendf(nil, `{"token":"%s","kind":"success","elapsed":"1ms"}`, k.Token),
		}
		if err := f.nc.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		a.kill() // and the worker with it
		f.node("b", nil)
		time.Sleep(time.Minute)
		if n := f.stored(); n < 2 {
			t.Errorf("a minute after the death of its owner and its worker the task of b is on no list, and its outcome in no history: %v", f.types("o"))
		}
	})
}
