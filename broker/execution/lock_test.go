package execution

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func lockUp(name string) *schemas.AcquireLock { return &schemas.AcquireLock{Lock: name} }

func letGo(name string) *schemas.ReleaseLock { return &schemas.ReleaseLock{Lock: name} }

// grant gives a run the place that it waits for.
func (w *world) grant(name string, fence uint64) {
	w.t.Helper()
	l := w.s.Locks[schemas.LockKey("", name)]
	if l == nil {
		w.t.Fatalf("nobody asked for lock %s", name)
	}
	w.do(Granted{Key: l.Key(), Asked: l.Asked(), Place: schemas.LockPlace{
		WorkflowID: w.s.WorkflowID, Run: l.Run, EventID: l.EventID, Fence: fence, Since: w.now, Lease: l.Lease,
	}})
}

func TestLockDecisions(t *testing.T) {
	for _, tt := range []struct {
		name      string
		decisions []schemas.DecisionAttributes
		want      string // after DeciderCompleted
	}{
		{"one", list(lockUp("L")), "LockRequested L"},
		{"two scopes", list(lockUp("L"), &schemas.AcquireLock{Lock: "L", Scope: "s"}), "LockRequested L; LockRequested s L"},
		{"twice", list(lockUp("L"), lockUp("L")), "LockRequested L; LockRefused L LOCK_ALREADY_REQUESTED; DeciderScheduled"},
		{"given back before it is there", list(lockUp("L"), letGo("L"), lockUp("L")), "LockRequested L; LockReleased L; LockRequested L"},
		{"given back without need", list(letGo("L")), "LockReleased L"},
		{"no name", list(lockUp("")), "LockRefused INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a scope that is no text", list(&schemas.AcquireLock{Lock: "L", Scope: "\xff"}), "LockRefused \xff L INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a name that cannot be given back", list(letGo("a\x00")), "LockRefused a\x00 INVALID_ATTRIBUTES ReleaseLock; DeciderScheduled"},
		{"a limit below 0", list(&schemas.AcquireLock{Lock: "L", Limit: -1}), "LockRefused L INVALID_ATTRIBUTES; DeciderScheduled"},
		{"the largest limit", list(&schemas.AcquireLock{Lock: "L", Limit: 1000}), "LockRequested L"},
		{"a limit beyond the limit", list(&schemas.AcquireLock{Lock: "L", Limit: 1001}), "LockRefused L INVALID_ATTRIBUTES; DeciderScheduled"},
		{"and the end", list(&schemas.RecordMarker{MarkerName: "m"}, letGo("L"), &schemas.CompleteWorkflow{}), "Marker m; LockReleased L; WorkflowSuccess"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := decided(t, tt.decisions...)
			w.mark = 4
			w.follows(tt.want)
		})
	}
}

func TestALockBesideTheEndIsRefused(t *testing.T) {
	w := decided(t, lockUp("L"), &schemas.CompleteWorkflow{})
	w.mark = 3
	w.follows("DeciderFailed INVALID_DECISION; DeciderScheduled")
}

func TestOpenLocksLimit(t *testing.T) {
	w := begin(t)
	w.c.OpenLocks = 1
	w.decide(lockUp("L"), lockUp("M"))
	w.follows("DeciderStarted; DeciderCompleted; LockRequested L; LockRefused M OPEN_LOCKS_LIMIT_EXCEEDED; DeciderScheduled")
	w.grant("L", 7)
	w.since()
	w.decide(lockUp("L"), setKey("lock-L", `"order-1"`, "")) // what it has takes no room
	w.follows("DeciderStarted; DeciderCompleted; LockRequested L; LockAcquired L 7; StateRequested lock-L; StateSet lock-L 7; DeciderScheduled")
	if got := (Config{}.Defaults()); got.OpenLocks != 100 || got.LockWaiters != 1000 {
		t.Fatalf("got %d and %d by default", got.OpenLocks, got.LockWaiters)
	}
}

func TestLockIsGrantedOnce(t *testing.T) {
	w := decided(t, lockUp("L"))
	w.wantEffects(w.effects, EnterLock{Key: "=.L", Asked: Asked{w.s.Run, 5}, By: 5})
	w.since()
	w.do(Granted{Key: "=.L", Asked: Asked{w.s.Run, 4}, Place: schemas.LockPlace{Fence: 1}}) // of another request
	w.do(Granted{Key: "=.M", Asked: Asked{w.s.Run, 5}, Place: schemas.LockPlace{Fence: 1}}) // of another lock
	w.follows("")
	w.grant("L", 7)
	w.grant("L", 8)
	w.do(Denied{Key: "=.L", Asked: Asked{w.s.Run, 5}, Cause: schemas.CauseLockLimit}) // late, and of no use
	w.follows("LockAcquired L 7; DeciderScheduled")
	w.decide(lockUp("L")) // what it has already
	w.follows("DeciderStarted; DeciderCompleted; LockRequested L; LockAcquired L 7; DeciderScheduled")
	w.decide(&schemas.AcquireLock{Lock: "L", Limit: 2})
	w.follows("DeciderStarted; DeciderCompleted; LockRefused L LOCK_LIMIT_DIFFERS; DeciderScheduled")
	w.effects = nil
	w.decide(letGo("L"))
	w.follows("DeciderStarted; DeciderCompleted; LockReleased L 7")
	w.wantEffects(w.effects, LeaveLock{Lock: "L", Asked: Asked{w.s.Run, 5}})
}

// A lock that is asked for again keeps its lease, whatever that says of one.
func TestLeaseStays(t *testing.T) {
	for _, lease := range []schemas.Duration{0, seconds(5), schemas.Unlimited} {
		w := decided(t, &schemas.AcquireLock{Lock: "L", Lease: seconds(30)})
		w.do(Granted{Key: "=.L", Asked: Asked{w.s.Run, 5}, Place: schemas.LockPlace{
			WorkflowID: w.s.WorkflowID, Run: w.s.Run, EventID: 5, Fence: 1, Since: w.now, Lease: seconds(30),
		}})
		since, until := w.now, w.now.Add(seconds(30))
		w.after(sec)
		w.decide(&schemas.AcquireLock{Lock: "L", Lease: lease})
		if got := w.s.Locks["=.L"]; got.Expires != until || got.Lease != seconds(30) || got.Since != since {
			t.Fatalf("got %+v, want the lease of %s until %s", got, since, until)
		}
	}
}

func TestLockIsDenied(t *testing.T) {
	w := decided(t, lockUp("L"))
	w.since()
	for range 2 {
		w.do(Denied{Key: "=.L", Asked: Asked{w.s.Run, 5}, Cause: schemas.CauseLockLimit, Details: "another"})
	}
	w.follows("LockRefused L LOCK_LIMIT_DIFFERS; DeciderScheduled")
	if len(w.s.Locks) != 0 {
		t.Fatalf("the run still has %v", w.s.Locks)
	}
}

func TestLockIsLostOrBroken(t *testing.T) {
	w := decided(t, lockUp("L"), lockUp("M"))
	w.grant("L", 1)
	w.grant("M", 2)
	w.since()
	w.do(Lost{Key: "=.L", Asked: Asked{w.s.Run, 5}, Cause: schemas.CauseLeaseExpired})
	w.follows("LockBroken L 1 LEASE_EXPIRED")
	w.effects = nil
	for range 2 {
		w.do(BreakLock{Request: &schemas.ExecutionRequest{Lock: "M", RequestID: "q", Reason: "stuck", Identity: "ann"}})
	}
	w.follows("LockBroken M 2 OPERATOR_INITIATED")
	w.wantEffects(w.effects, LeaveLock{Lock: "M", Asked: Asked{w.s.Run, 6}})
	if !w.s.Repeated(&schemas.ExecutionRequest{RequestID: "q"}) {
		t.Fatal("the request is not remembered")
	}
	if len(w.s.Locks) != 0 {
		t.Fatalf("the run still has %v", w.s.Locks)
	}
}

// Any end gives everything back; a run that continues keeps what it holds, and leaves the lines where it waits.
func TestLocksAtTheEnd(t *testing.T) {
	for name, end := range map[string]func(*world){
		"LockReleased L 1; LockReleased M; LockReleased N 2; WorkflowTerminated": func(w *world) { w.do(Terminate{Request: &schemas.ExecutionRequest{}}) },
		"LockReleased M; WorkflowContinuedAsNew":                                 func(w *world) { w.decide(&schemas.ContinueAsNew{}) },
	} {
		w := decided(t, lockUp("L"), lockUp("M"), lockUp("N"))
		w.grant("N", 2)
		w.grant("L", 1)
		w.since()
		w.effects = nil
		end(w)
		got := w.since()
		if n := len(name); len(got) < n || got[len(got)-n:] != name {
			t.Fatalf("got %s, want it to end with %s", got, name)
		}
		w.wantEffects(w.s.OpenEffects(w.now)) // what it held is the next run's to see to
		next := w.s.Continuation()
		if next == nil {
			if left := of[LeaveLock](w.effects); len(left) != 3 {
				t.Fatalf("gives back %v, want all", left)
			}
			continue
		}
		want := []schemas.HeldLock{{Lock: "L", Fence: 1, Run: w.s.Run, EventID: 5}, {Lock: "N", Fence: 2, Run: w.s.Run, EventID: 7}}
		if d := cmp.Diff(want, next.Origin.Locks); d != "" {
			t.Fatalf("the next run gets (-want +got):\n%s", d)
		}
		s := New(w.s.WorkflowID, next.Run)
		s.Step(&w.c, Start{Request: next}, w.now)
		if l := s.LockOf("=.L", Asked{w.s.Run, 5}); l == nil || l.Fence != 1 || l.By != 1 || len(s.Locks) != 2 {
			t.Fatalf("the next run has %+v", s.Locks)
		}
		open := []Effect{EnterLock{Key: "=.L", Asked: Asked{w.s.Run, 5}, By: 1}, EnterLock{Key: "=.N", Asked: Asked{w.s.Run, 7}, By: 1}}
		if d := cmp.Diff(open, s.OpenEffects(w.now)); d != "" {
			t.Fatalf("open effects (-want +got):\n%s", d)
		}
	}
}

// A run that enters by its ancestor has no place of its own to give back.
func TestSharedLock(t *testing.T) {
	w := decided(t, lockUp("L"))
	w.since()
	w.effects = nil
	w.do(Granted{Key: "=.L", Asked: Asked{w.s.Run, 5}, Place: schemas.LockPlace{WorkflowID: "parent", Run: "r", EventID: 3, Fence: 9}})
	w.follows("LockAcquired L 9; DeciderScheduled")
	w.wantEffects(w.do(BreakLock{Request: &schemas.ExecutionRequest{Lock: "L", RequestID: "q"}}))
	w.wantEffects(w.s.OpenEffects(w.now))
	w.decide(&schemas.ClearState{Key: "lock-L"}) // it is the ancestor's to be broken
	w.wantEffects(w.s.OpenEffects(w.now), AskState{ScheduledID: 10})
	w.do(Terminate{Request: &schemas.ExecutionRequest{}})
	w.follows("DeciderStarted; DeciderCompleted; StateRequested lock-L; LockReleased L 9; WorkflowTerminated")
	if left := of[LeaveLock](w.effects); len(left) != 0 {
		t.Fatalf("gives back %v", left)
	}
}

func TestLocksInASnapshot(t *testing.T) {
	w := decided(t, &schemas.AcquireLock{Lock: "L", Scope: "s", Limit: 3, Lease: seconds(9)})
	s := w.restored()
	if d := cmp.Diff(w.s.Locks, s.Locks); d != "" {
		t.Fatalf("(-before +restored):\n%s", d)
	}
	s.Locks["another"] = s.Locks["s.L"]
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(b); err == nil {
		t.Fatal("a snapshot with a lock under another key is restored")
	}
}
