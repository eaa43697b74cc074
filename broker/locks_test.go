package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Locks by raw deciders: A0-1 … A0-6, and that they heal (P-13).

func acquire(lock, more string) string {
	return `{"type":"AcquireLock","attributes":{"lock":"` + lock + `"` + more + `}}`
}

func release(lock, more string) string {
	return `{"type":"ReleaseLock","attributes":{"lock":"` + lock + `"` + more + `}}`
}

// mutex decides that its run takes a lock, waits for a signal, and completes.
func mutex(lock, more string) func(*decisionTask) string {
	return when("Signal", complete, "WorkflowStarted", "["+acquire(lock, more)+"]")
}

// lockOf returns the key of a lock as it stands; nil if nobody wants it.
func (f *fleet) lockOf(lock, scope string) *schemas.LockRecord {
	f.t.Helper()
	raw, err := json.Marshal(f.api("locks", fmt.Sprintf(`{"lock":%q,"scope":%q}`, lock, scope)))
	if err != nil {
		f.t.Fatal(err)
	}
	var a schemas.LocksResponse
	if err := json.Unmarshal(raw, &a); err != nil {
		f.t.Fatal(err)
	}
	if a.Error != nil {
		f.t.Fatal(a.Error)
	}
	if len(a.Locks) == 0 {
		return nil
	}
	return &a.Locks[0]
}

// ids are the workflow ids of places.
func ids(places []schemas.LockPlace) string {
	all := make([]string, len(places))
	for i, p := range places {
		all[i] = p.WorkflowID
	}
	return strings.Join(all, " ")
}

// stands waits until a lock has these holders and waiters.
func (f *fleet) stands(lock, scope, holders, waiters string) *schemas.LockRecord {
	f.t.Helper()
	var r *schemas.LockRecord
	for wait := 20 * time.Millisecond; wait < 10*time.Second; wait += wait / 16 {
		if r = f.lockOf(lock, scope); r == nil {
			r = &schemas.LockRecord{}
		}
		if ids(r.Holders) == holders && ids(r.Waiters) == waiters {
			return r
		}
		time.Sleep(wait)
	}
	f.t.Fatalf("lock %s: holders %q, waiters %q; want %q, %q", lock, ids(r.Holders), ids(r.Waiters), holders, waiters)
	return nil
}

// happens waits until the latest run of a workflow has an event of a type, and returns it.
func (f *fleet) happens(id, typ string) schemas.Event {
	f.t.Helper()
	var found schemas.Event
	if !f.until(3*time.Minute, func() bool {
		events := f.recorded(id)
		i := slices.IndexFunc(events, func(e schemas.Event) bool { return string(e.Type()) == typ })
		if i >= 0 {
			found = events[i]
		}
		return i >= 0
	}) {
		f.t.Fatalf("%s has no %s: %v; %v", id, typ, f.recordedTypes(id), f.api("why", `{"workflowId":"`+id+`"}`)["because"])
	}
	return found
}

func (f *fleet) has(id, typ string) bool {
	f.t.Helper()
	return f.happened(id, schemas.EventType(typ)) > 0
}

// A0-1, A0-2, A0-3: one at a time, by name and scope, and who waits can tell for whom.
func TestA0_1And2And3Locks(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("one", mutex("L", ""))
		f.decider("other", mutex("L", ""))
		f.decider("scoped", mutex("L", `,"scope":"s/1"`))
		f.start(`{"workflowId":"w1","type":"one"}`)
		f.happens("w1", "LockAcquired")
		f.start(`{"workflowId":"w2","type":"one"}`)
		f.stands("L", "", "w1", "w2")
		f.start(`{"workflowId":"w3","type":"other"}`)
		f.stands("L", "", "w1", "w2 w3")
		f.start(`{"workflowId":"w4","type":"scoped"}`)
		f.happens("w4", "LockAcquired")
		f.stands("L", "s/1", "w4", "")
		time.Sleep(time.Minute)
		if f.has("w2", "LockAcquired") || f.has("w3", "LockAcquired") {
			t.Fatal("a second run holds the lock")
		}
		why, _ := f.api("why", `{"workflowId":"w3"}`)["because"].(string)
		if !strings.Contains(why, `lock "L" is held by workflow "w1" since `) || !strings.Contains(why, "1 run waits before this one") {
			t.Fatalf("why says %q", why)
		}
		for _, id := range []string{"w1", "w2", "w3", "w4"} {
			f.happens(id, "LockAcquired")
			f.publish(ns.Signal(id, "go"), "")
			f.completes(id)
			if !f.has(id, "LockReleased") {
				t.Fatalf("%s keeps the lock: %v", id, f.types(id))
			}
		}
		f.stands("L", "", "", "")
		f.stands("L", "s/1", "", "")
	})
}

// A0-4: the holder still holds the lock when its owner comes back, and nobody got in between.
func TestA0_4HeldOverACrash(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.decider("one", mutex("L", ""))
		a := f.node("a", nil)
		f.start(`{"workflowId":"w1","type":"one"}`)
		fence := f.happens("w1", "LockAcquired").Attributes.(*schemas.LockAcquired).Fence
		f.start(`{"workflowId":"w2","type":"one"}`)
		f.stands("L", "", "w1", "w2")
		a.kill()
		f.node("b", nil)
		if r := f.stands("L", "", "w1", "w2"); r.Holders[0].Fence != fence {
			t.Fatalf("the holder has fence %d, want %d", r.Holders[0].Fence, fence)
		}
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		if got := f.happens("w2", "LockAcquired").Attributes.(*schemas.LockAcquired).Fence; got <= fence {
			t.Fatalf("the second holder has fence %d after %d", got, fence)
		}
		f.publish(ns.Signal("w2", "go"), "")
		f.completes("w2")
	})
}

// A0-5: the lock is free after success, failure, timeout, cancel and termination.
func TestA0_5FreeAfterAnyEnd(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		ends := map[string]string{
			"done": complete, "fail": `[{"type":"FailWorkflow","attributes":{"reason":"broke"}}]`,
			"give": "[" + release("L", "") + `,{"type":"CompleteWorkflow"}]`,
		}
		for typ, end := range ends {
			f.decider(typ, when("LockAcquired", end, "WorkflowStarted", "["+acquire("L", "")+"]"))
		}
		f.decider("hold", when(
			"WorkflowCancelRequested", `[{"type":"CancelWorkflow"}]`,
			"WorkflowStarted", "["+acquire("L", "")+"]",
		))
		f.start(`{"workflowId":"slow","type":"hold","executionStartToCloseTimeout":30}`)
		f.happens("slow", "LockAcquired")
		for _, typ := range []string{"done", "fail", "give"} {
			f.start(`{"workflowId":"` + typ + `","type":"` + typ + `"}`)
		}
		if got := f.result("slow"); got != "timedOut" {
			t.Fatalf("slow: %s", got)
		}
		for typ, want := range map[string]string{"done": "completed", "fail": "failed", "give": "completed"} {
			if got := f.result(typ); got != want {
				t.Fatalf("%s: %s, want %s", typ, got, want)
			}
		}
		for verb, want := range map[string]string{"cancel": "canceled", "terminate": "terminated"} {
			f.start(`{"workflowId":"` + verb + `","type":"hold"}`)
			f.happens(verb, "LockAcquired")
			f.api(verb, `{"workflowId":"`+verb+`"}`)
			if got := f.result(verb); got != want {
				t.Fatalf("%s: %s", verb, got)
			}
		}
		f.stands("L", "", "", "")
	})
}

// A0-6: who forces the key clear by hand frees the lock for those who wait; the holder learns of it, or gets it back if nobody
// waits.
func TestA0_6ClearedByHand(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w1","type":"one"}`)
		first := f.happens("w1", "LockAcquired").Attributes.(*schemas.LockAcquired).Fence
		_, rev, err := f.post.KVGet(t.Context(), ns.BucketLocks(), "=.L")
		if err != nil {
			t.Fatal(err)
		}
		if err := f.post.KVDelete(t.Context(), ns.BucketLocks(), "=.L", rev); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if r := f.stands("L", "", "w1", ""); r.Holders[0].Fence != first {
			t.Fatalf("the holder got the lock back with fence %d, want %d", r.Holders[0].Fence, first)
		}
		value := `{"lock":"L","limit":1,"next":99,"holders":[{"workflowId":"nobody","run":"r","eventId":3,"fence":98,"since":"2026-01-01T00:00:00Z"}]}`
		_, rev, err = f.post.KVGet(t.Context(), ns.BucketLocks(), "=.L")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.post.KVUpdate(t.Context(), ns.BucketLocks(), "=.L", []byte(value), rev, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		f.stands("L", "", "", "") // a holder that never was is taken out
	})
}

// 50 runs of four partitions and two owners get the lock in the order in which they came.
func TestLockIsFirstInFirstOut(t *testing.T) {
	virtually(t, 4, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.node("b", nil)
		var order []string
		f.decider("queue", when("LockAcquired", complete, "WorkflowStarted", "["+acquire("L", "")+"]"))
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"first","type":"one"}`)
		f.happens("first", "LockAcquired")
		line := ""
		for i := range 50 {
			id := fmt.Sprintf("w%02d", i)
			f.start(`{"workflowId":"` + id + `","type":"queue"}`)
			line = strings.TrimSpace(line + " " + id)
			f.stands("L", "", "first", line)
			order = append(order, id)
		}
		f.publish(ns.Signal("first", "go"), "")
		fence := uint64(0)
		for _, id := range order {
			f.completes(id)
			got := f.happens(id, "LockAcquired").Attributes.(*schemas.LockAcquired).Fence
			if got <= fence {
				t.Fatalf("%s got fence %d after %d", id, got, fence)
			}
			fence = got
		}
		f.stands("L", "", "", "")
	})
}

// Three may enter; a fourth waits, and one that says four is refused.
func TestLockWithALimit(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("three", mutex("L", `,"limit":3`))
		f.decider("four", mutex("L", `,"limit":4`))
		for i := range 4 {
			f.start(fmt.Sprintf(`{"workflowId":"w%d","type":"three"}`, i))
			time.Sleep(time.Second)
		}
		f.stands("L", "", "w0 w1 w2", "w3")
		f.start(`{"workflowId":"x","type":"four"}`)
		if got := f.happens("x", "LockRefused").Attributes.(*schemas.LockRefused).Cause; got != schemas.CauseLockLimit {
			t.Fatalf("refused for %s", got)
		}
		f.publish(ns.Signal("w1", "go"), "")
		f.completes("w1")
		f.stands("L", "", "w0 w2 w3", "")
		for _, id := range []string{"w0", "w2", "w3", "x"} {
			f.happens(id, "DeciderCompleted")
			f.publish(ns.Signal(id, "go"), "")
			f.completes(id)
		}
		f.stands("L", "", "", "")
	})
}

// P-15, P-16: a lease counts by the server's clock, from when the lock was got; it ends only for somebody who wants the lock.
func TestLockLease(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("lease", mutex("L", `,"lease":60`))
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w1","type":"lease"}`)
		got := f.happens("w1", "LockAcquired")
		if until := got.Attributes.(*schemas.LockAcquired).Expires; until.Sub(got.Time) > time.Minute || until.Sub(got.Time) < 59*time.Second {
			t.Fatalf("acquired at %s, the lease is until %s", got.Time, until)
		}
		time.Sleep(5 * time.Minute)
		f.stands("L", "", "w1", "")
		f.start(`{"workflowId":"w2","type":"lease"}`) // its lease is over: nobody wanted the lock till now
		f.happens("w2", "LockAcquired")
		if b := f.happens("w1", "LockBroken").Attributes.(*schemas.LockBroken); b.Cause != schemas.CauseLeaseExpired {
			t.Fatalf("broken: %+v", b)
		}
		at := f.happens("w2", "LockAcquired").Attributes.(*schemas.LockAcquired).Expires
		f.start(`{"workflowId":"w3","type":"one"}`)
		f.stands("L", "", "w2", "w3")
		if e := f.happens("w3", "LockAcquired"); e.Time < at || e.Time.Sub(at) > time.Second {
			t.Fatalf("acquired at %s, the lease before was until %s", e.Time, at)
		}
		f.happens("w2", "LockBroken")
		for _, id := range []string{"w1", "w2", "w3"} {
			f.publish(ns.Signal(id, "go"), "")
			f.completes(id)
		}
		f.stands("L", "", "", "")
	})
}

// An operator takes the lock from its holder: the next one has it, and the histories of both tell.
func TestBreakLock(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("one", mutex("L", ""))
		f.start(`{"workflowId":"w1","type":"one"}`)
		f.happens("w1", "LockAcquired")
		f.start(`{"workflowId":"w2","type":"one"}`)
		r := f.stands("L", "", "w1", "w2")
		ask := func(id, run string) map[string]any {
			return f.api("breakLock", fmt.Sprintf(`{"workflowId":%q,"run":%q,"lock":"L","reason":"stuck","identity":"ann","requestId":"q1"}`, id, run))
		}
		if a := ask("w2", r.Waiters[0].Run); a["error"] == nil {
			t.Fatalf("taken from who does not hold it: %v", a)
		}
		for range 2 { // a repeat gets the same answer, and takes nothing from the next holder (P-5)
			if a := ask("w1", r.Holders[0].Run); a["error"] != nil {
				t.Fatalf("refused: %v", a)
			}
			f.stands("L", "", "w2", "")
		}
		b := f.happens("w1", "LockBroken").Attributes.(*schemas.LockBroken)
		if b.Reason != "stuck" || b.Identity != "ann" || b.Cause != schemas.CauseOperatorInitiated || b.Fence != r.Holders[0].Fence {
			t.Fatalf("broken: %+v", b)
		}
		f.happens("w2", "LockAcquired")
		for _, id := range []string{"w1", "w2"} {
			f.publish(ns.Signal(id, "go"), "")
			f.completes(id)
		}
		f.stands("L", "", "", "")
	})
}

// Systems outside have seen the fences of a lock: those of a bucket that was deleted by hand and made anew are above them.
func TestFencesOfLocksGrowBeyondTheirBucket(t *testing.T) {
	virtually(t, 2, func(t *testing.T, f *fleet) {
		a := f.node("a", nil)
		f.decider("brief", when("LockAcquired", complete, "WorkflowStarted", "["+acquire("L", "")+"]"))
		fence := func(id string) uint64 {
			f.start(`{"workflowId":"` + id + `","type":"brief"}`)
			f.completes(id)
			return f.happens(id, "LockAcquired").Attributes.(*schemas.LockAcquired).Fence
		}
		var before uint64
		for i := range 4 {
			before = fence(fmt.Sprintf("before-%d", i))
		}
		a.stop()
		if err := f.js.DeleteStream(t.Context(), "KV_"+ns.BucketLocks()); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second finds what the first has made
			if _, err := topology.Ensure(t.Context(), f.post, topology.Options{Memory: true}); err != nil {
				t.Fatal(err)
			}
		}
		f.node("b", nil)
		if after := fence("after"); after <= before {
			t.Fatalf("fence %d after a fence of %d", after, before)
		}
	})
}
