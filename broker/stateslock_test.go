package broker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A0-6: the key lock-NAME is a view of the lock NAME.

// try takes lock L for a workflow if it is free, or if it has it already.
func try(id string) string {
	return stateDecision("SetState", "lock-L", `,"value":"`+id+`","require":{"any":[{"when":"absent"},{"equals":"`+id+`"}]}`)
}

var (
	readLock  = stateDecision("GetState", "lock-L", "")
	clearLock = stateDecision("ClearState", "lock-L", "")
)

// A0-6: who sets the key of a free lock holds the lock, as if it had stood in line for it; others are refused, and see who has it.
func TestA0_6TryLock(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("holds", script(readLock, try("w1"), try("w1"), readLock, "wait"))
		f.start(`{"workflowId":"w1","type":"holds"}`)
		f.stands("L", "", "w1", "")
		f.decider("tries", script(readLock, try("w2"), try("w1")))
		f.start(`{"workflowId":"w2","type":"tries"}`)
		f.completes("w2")
		f.wantAnswers("w2", `read lock-L "w1"`, `refused lock-L REQUIREMENT_NOT_MET "w1"`, "refused lock-L INVALID_ATTRIBUTES -")
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w3","type":"one"}`)
		f.stands("L", "", "w1", "w3")
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		f.wantAnswers("w1", "read lock-L -", "acquired L", "set lock-L", "set lock-L", `read lock-L "w1"`, "released L")
		f.happens("w3", "LockAcquired")
		f.publish(ns.Signal("w3", "go"), "")
		f.completes("w3")
		f.stands("L", "", "", "")
		if r, _ := f.state("", "lock-L"); r != nil {
			t.Fatalf("the key of the view is stored: %+v", r)
		}
	})
}

// A0-6: who clears the key takes the lock from its holder, whose history tells; the next in line gets it.
func TestA0_6ClearLock(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.node("b", nil)
		time.Sleep(30 * time.Second)
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w1","type":"one"}`)
		f.happens("w1", "LockAcquired")
		f.start(`{"workflowId":"w2","type":"one"}`)
		f.stands("L", "", "w1", "w2")
		f.decider("clears", script(clearLock))
		f.start(`{"workflowId":"w3","type":"clears"}`)
		f.completes("w3")
		f.wantAnswers("w3", "cleared lock-L")
		f.stands("L", "", "w2", "")
		b := f.happens("w1", "LockBroken").Attributes.(*schemas.LockBroken)
		if b.Cause != schemas.CauseClearedByWorkflow || !strings.Contains(b.Reason, `"w3"`) {
			t.Fatalf("broken: %+v", b)
		}
		f.decider("own", script(try("w4"), clearLock, clearLock, try("w4")))
		f.publish(ns.Signal("w2", "go"), "")
		f.completes("w2")
		f.stands("L", "", "", "")
		f.start(`{"workflowId":"w4","type":"own"}`)
		f.completes("w4")
		f.wantAnswers("w4", "acquired L", "set lock-L", "released L", "cleared lock-L", "cleared lock-L", "acquired L", "set lock-L", "released L")
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		f.stands("L", "", "", "")
	})
}

// A lock of several places is no lock to try: it is refused, with one of its holders. One of the run's own that waits is too.
func TestTryLockThatIsNone(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("three", mutex("L", `,"limit":3`))
		f.start(`{"workflowId":"w1","type":"three"}`)
		f.happens("w1", "LockAcquired")
		f.decider("tries", script(try("w2"), stateDecision("SetState", "lock-L", `,"value":"w2","require":{"equals":"w2"}`), readLock))
		f.start(`{"workflowId":"w2","type":"tries"}`)
		f.completes("w2")
		f.wantAnswers("w2", `refused lock-L LOCK_LIMIT_DIFFERS "w1"`, "refused lock-L REQUIREMENT_NOT_MET -", `read lock-L "w1"`)
		f.decider("both", when(
			"WorkflowStarted", "["+acquire("M", "")+","+stateDecision("SetState", "lock-M", `,"value":"w3"`)+","+stateDecision("SetState", "lock-N", `,"value":"w3"`)+","+release("N", "")+"]",
			"Signal", complete,
		))
		f.start(`{"workflowId":"w3","type":"both"}`)
		f.happens("w3", "StateSet")
		time.Sleep(time.Second)
		got := f.answers("w3")
		slices.Sort(got)
		want := []string{"acquired M", "acquired N", "refused lock-M LOCK_ALREADY_REQUESTED -", "set lock-N"}
		if !slices.Equal(got, want) || !f.has("w3", "LockRefused") {
			t.Fatalf("got %q, want %q and a refused release", got, want)
		}
		for _, id := range []string{"w1", "w3"} {
			f.publish(ns.Signal(id, "go"), "")
			f.completes(id)
		}
		f.stands("N", "", "", "")
	})
}

// A0-4, A0-6: with a crash at every publish of the way, before and after it: who holds is one at a time, what is cleared is cleared
// once, and nobody is left over.
func TestA0_6OverCrashes(t *testing.T) {
	overCrashes(t, map[string]int{"drover.default.history.": 8, "$KV.drover-default-locks.": 3, "drover.default.in.": 1}, clearsOnce)
}

// clearsOnce: w1 tries and holds; w2 stands in line; w3 clears, which must hit w1 and not w2.
func clearsOnce(t *testing.T, j judge) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("holds", when("Signal", complete, "WorkflowStarted", "["+try("w1")+"]"))
		f.decider("one", mutex("L", ""))
		f.decider("clears", when("StateCleared", complete, "WorkflowStarted", "["+clearLock+"]"))
		a := f.node("a", j)
		defer f.relieve(a)()
		f.startsAtLast("w1", "holds")
		f.stands("L", "", "w1", "")
		f.startsAtLast("w2", "one")
		f.stands("L", "", "w1", "w2")
		time.Sleep(time.Second)
		f.startsAtLast("w3", "clears")
		f.completesAtLast("w3")
		f.stands("L", "", "w2", "")
		f.happens("w2", "LockAcquired")
		time.Sleep(time.Minute)
		if f.has("w2", "LockBroken") || !f.has("w1", "LockBroken") {
			t.Fatalf("w1: %v, w2: %v", f.types("w1"), f.types("w2"))
		}
		for _, id := range []string{"w1", "w2"} {
			f.publish(ns.Signal(id, "go"), "")
			f.completesAtLast(id)
		}
		f.stands("L", "", "", "")
		if !a.killed() {
			t.Fatal("the crash never came: nothing matched")
		}
	})
}
