package broker_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// P-13: with a crash at every publish and every compare-and-set of the way, before and after it, the lock heals: one run at a
// time, in order, and nobody is left over.
func TestP13LocksHeal(t *testing.T) {
	overCrashes(t, map[string]int{"drover.default.history.": 10, "$KV.drover-default-locks.": 5, "$KV.drover-default-checkpoints.": 3}, func(t *testing.T, j judge) { heals(t, j, true) })
}

// P-13: so does it if a write is lost, or its answer, or it comes twice, or too late, and the owner lives on.
func TestP13LocksHealWithoutACrash(t *testing.T) {
	overLosses(t, "$KV.drover-default-locks.", 5, func(t *testing.T, j judge) { heals(t, j, false) })
}

func heals(t *testing.T, j judge, crashes bool) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("queue", when(
			"LockAcquired", `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":1}}]`,
			"TimerExpired", complete,
			"WorkflowStarted", "["+acquire("L", "")+"]",
		))
		a := f.node("a", j)
		defer f.relieve(a)()
		for _, id := range []string{"w1", "w2", "w3"} {
			f.startsAtLast(id, "queue")
		}
		for _, id := range []string{"w1", "w2", "w3"} {
			f.completesAtLast(id)
		}
		f.stands("L", "", "", "")
		if crashes && !a.killed() {
			t.Fatal("the crash never came: nothing matched")
		}
	})
}

// P-13: an owner whose first try to change a lock was lost looks at the fence before it tries again, and writes nothing once
// another has fenced the partition.
func TestP13FencedOwnerChangesNoLock(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("one", mutex("L", ""))
		f.fencedWritesNothing("$KV.drover-default-locks.")
		if keys, err := f.post.KVKeys(t.Context(), ns.BucketLocks()); err != nil || len(keys) != 0 {
			t.Fatalf("keys %v, %v; want none", keys, err)
		}
	})
}

// Two owners, two partitions each, and runs that all want one lock at once: everybody gets it once, one at a time.
func TestLockIsWantedByAllAtOnce(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.decider("queue", when("LockAcquired", complete, "WorkflowStarted", "["+acquire("L", "")+"]"))
		f.node("a", nil)
		b := f.node("b", nil)
		time.Sleep(30 * time.Second)
		var starts sync.WaitGroup
		for i := range 40 {
			starts.Go(func() { f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"queue"}`, i)) })
		}
		starts.Wait()
		b.stop()
		fences := map[uint64]bool{}
		for i := range 40 {
			id := fmt.Sprintf("w%d", i)
			f.completes(id)
			fences[f.happens(id, "LockAcquired").Attributes.(*schemas.LockAcquired).Fence] = true
		}
		if len(fences) != 40 {
			t.Fatalf("%d fences, want one for each of 40", len(fences))
		}
		f.stands("L", "", "", "")
	})
}
