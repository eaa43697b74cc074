package broker_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// P-13: with a crash at every publish and every compare-and-set of the way, before and behind it, the lock heals: one run at a
// time, in order, and nobody is left behind.
func TestP13LocksHeal(t *testing.T) {
	cases, all := 0, 0
	for _, verdict := range []struct {
		name string
		v    cutwire.Verdict
	}{{"before", cutwire.CutBefore}, {"behind", cutwire.CutAfter}} {
		for prefix, writes := range map[string]int{"drover.default.history.": 10, "$KV.drover-default-locks.": 5, "$KV.drover-default-checkpoints.": 3} {
			all += writes
			for _, n := range tried(writes, halfShare, 0, 1) {
				cases++
				t.Run(fmt.Sprintf("%s %s %d", verdict.name, prefix, n), func(t *testing.T) { heals(t, nth(n, prefix, verdict.v), true) })
			}
		}
	}
	t.Logf("%d of %d crashes; -publishes=1 tries all", cases, all)
}

// P-13: so does it if a write is lost, or its answer, or it comes twice, or too late, and the owner lives on.
func TestP13LocksHealWithoutACrash(t *testing.T) {
	for name, v := range map[string]cutwire.Verdict{"lost": cutwire.Swallow, "answer lost": cutwire.Unanswered, "twice": cutwire.Twice, "late": cutwire.Late} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) { heals(t, nth(n, "$KV.drover-default-locks.", v), false) })
		}
	}
}

func heals(t *testing.T, judge func(string, []byte) cutwire.Verdict, crashes bool) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("queue", when(
			"LockAcquired", `[{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":1}}]`,
			"TimerExpired", complete,
			"WorkflowStarted", "["+acquire("L", "")+"]",
		))
		a := f.node("a", judge)
		defer f.relieve(a)()
		for _, id := range []string{"w1", "w2", "w3"} {
			for f.start(`{"workflowId":"` + id + `","type":"queue","requestId":"` + id + `"}`)["error"] != nil {
				time.Sleep(100 * time.Millisecond)
			}
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

// completesAtLast is completes for a fleet whose nodes come and go: an answer may be that nobody can answer now.
func (f *fleet) completesAtLast(id string) {
	f.t.Helper()
	var a map[string]any
	for range 600 {
		if a = f.api("result", `{"workflowId":"`+id+`","wait":20}`); a["status"] == "completed" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	f.t.Fatalf("%s does not complete: %v; %v", id, a, f.api("why", `{"workflowId":"`+id+`"}`)["because"])
}

// P-13: an owner whose first try to change a lock was lost looks at the fence before it tries again, and writes nothing once
// another has fenced the partition.
func TestP13FencedOwnerChangesNoLock(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("one", mutex("L", ""))
		var tries atomic.Int64
		f.node("a", func(subj string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subj, "$KV.drover-default-locks.") && tries.Add(1) == 1 {
				return cutwire.Swallow
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"w1","type":"one"}`)
		for tries.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		if _, err := broker.Fence(t.Context(), f.post, ns, 0, 1<<40, "other"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := tries.Load(); n != 1 {
			t.Fatalf("%d writes, want only the one that was lost", n)
		}
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
