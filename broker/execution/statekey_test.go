package execution

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func setKey(key, value, require string) *schemas.SetState {
	return &schemas.SetState{Key: key, Value: schemas.Text(value), Require: schemas.Text(require)}
}

func TestStateDecisions(t *testing.T) {
	for _, tt := range []struct {
		name      string
		decisions []schemas.DecisionAttributes
		want      string // after DeciderCompleted
	}{
		{"three", list(&schemas.GetState{Key: "k"}, setKey("k", "1", ""), &schemas.ClearState{Key: "k", Scope: "s"}), "StateRequested k; StateRequested k; StateRequested s k"},
		{"no key", list(&schemas.GetState{}), "StateRefused INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a scope that is no text", list(&schemas.ClearState{Key: "k", Scope: "\xff"}), "StateRefused \xff k INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a long key", list(setKey(strings.Repeat("k", 257), "1", "")), "StateRefused " + strings.Repeat("k", 257) + " INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a large value", list(setKey("k", strings.Repeat("x", schemas.MaxStateValue+1), "")), "StateRefused k INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a value as large as may be", list(setKey("k", strings.Repeat("1", schemas.MaxStateValue), "")), "StateRequested k"},
		{"a reference to a large payload", list(&schemas.SetState{Key: "k", Value: schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 1, Digest: strings.Repeat("0", 64)})}), "StateRefused k INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a requirement that is none", list(setKey("k", "1", `{"size":1}`)), "StateRefused k INVALID_ATTRIBUTES; DeciderScheduled"},
		{"the lock of no name", list(setKey("lock-", `"order-1"`, "")), "StateRequested lock-"},
		{"a lock", list(setKey("lock-L", `"order-1"`, "")), "StateRequested lock-L"},
		{"a lock by a text that is no JSON", list(setKey("lock-L", "order-1", "")), "StateRequested lock-L"},
		{"a lock by the run's id", list(setKey("lock-L", `"RUN"`, "")), "StateRequested lock-L"},
		{"a lock for another", list(setKey("lock-L", `"other"`, "")), "StateRefused lock-L INVALID_ATTRIBUTES; DeciderScheduled"},
		{"a lock of a requirement that no free lock meets", list(setKey("lock-L", `"order-1"`, `"order-1"`)), "StateRequested lock-L; StateRefused lock-L REQUIREMENT_NOT_MET; DeciderScheduled"},
		{"a lock twice", list(setKey("lock-L", `"order-1"`, ""), setKey("lock-L", `"order-1"`, "")), "StateRequested lock-L; StateRefused lock-L LOCK_ALREADY_REQUESTED; DeciderScheduled"},
		{"a lock that is tried and asked for", list(setKey("lock-L", `"order-1"`, ""), lockUp("L")), "StateRequested lock-L; LockRefused L LOCK_ALREADY_REQUESTED; DeciderScheduled"},
		{"a lock that is tried and released", list(setKey("lock-L", `"order-1"`, ""), letGo("L")), "StateRequested lock-L; LockRefused L LOCK_ALREADY_REQUESTED ReleaseLock; DeciderScheduled"},
		{"a view that is read", list(&schemas.GetState{Key: "lock-L"}), "StateRequested lock-L"},
		{"a key with the name of a lock", list(lockUp("L"), &schemas.ClearState{Key: "L"}), "LockRequested L; StateRequested L"},
		{"a view that is cleared", list(lockUp("L"), &schemas.ClearState{Key: "lock-L"}), "LockRequested L; StateRequested lock-L"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t)
			for _, d := range tt.decisions {
				if s, ok := d.(*schemas.SetState); ok && string(s.Value) == `"RUN"` {
					s.Value = schemas.Text(w.s.Run)
				}
			}
			w.decide(tt.decisions...)
			w.mark = 4
			w.follows(tt.want)
		})
	}
}

func TestStateRequestsAreAnsweredOnce(t *testing.T) {
	w := decided(t, &schemas.GetState{Key: "k"}, setKey("k", "1", ""), &schemas.ClearState{Key: "k"}, setKey("k", "2", "3"))
	w.wantEffects(w.effects, AskState{5}, AskState{6}, AskState{7}, AskState{8})
	if d := cmp.Diff([]Effect{AskState{5}, AskState{6}, AskState{7}, AskState{8}}, w.s.OpenEffects(w.now)); d != "" {
		t.Fatalf("open effects (-want +got):\n%s", d)
	}
	w.since()
	at := func(id int64) Asked { return Asked{Run: w.s.Run, EventID: id} }
	w.do(Answered{Asked: Asked{Run: "another", EventID: 5}})
	w.do(Answered{Asked: at(4)})
	w.follows("")
	for range 2 {
		w.do(Answered{Asked: at(5), Value: schemas.Text("7"), Revision: 3})
		w.do(Answered{Asked: at(6), Revision: 4})
		w.do(Answered{Asked: at(7)})
		w.do(Answered{Asked: at(8), Cause: schemas.CauseRequirement, Value: schemas.Text("7")})
	}
	w.follows("StateRead k 7; DeciderScheduled; StateSet k 4; StateCleared k; StateRefused k REQUIREMENT_NOT_MET 7")
	if len(w.s.Requests) != 0 {
		t.Fatalf("still open: %v", w.s.Requests)
	}
}

// A lock that was taken by its key is a lock like others: it goes on to the next run, and is given back at the end.
func TestLockByItsKey(t *testing.T) {
	mine := `{"any":[{"when":"absent"},{"equals":"order-1"}]}`
	w := decided(t, setKey("lock-L", `"order-1"`, mine))
	w.wantEffects(w.effects, EnterLock{Key: "=.L", Asked: Asked{w.s.Run, 5}, By: 5})
	w.wantEffects(w.s.OpenEffects(w.now), EnterLock{Key: "=.L", Asked: Asked{w.s.Run, 5}, By: 5})
	w.since()
	w.do(Answered{Asked: Asked{Run: w.s.Run, EventID: 5}, Revision: 9}) // locks are told in another way
	w.follows("")
	for range 2 {
		w.grant0(5, 7)
	}
	w.follows("LockAcquired L 7; StateSet lock-L 7; DeciderScheduled")
	w.decide(setKey("lock-L", `"order-1"`, mine), setKey("lock-L", `"order-1"`, `{"when":"absent"}`), lockUp("L"))
	w.follows("DeciderStarted; DeciderCompleted; StateRequested lock-L; StateSet lock-L 7; StateRequested lock-L; " +
		`StateRefused lock-L REQUIREMENT_NOT_MET "order-1"; LockRequested L; LockAcquired L 7; DeciderScheduled`)
	w.effects = nil
	w.decide(&schemas.ClearState{Key: "lock-L"})
	w.follows("DeciderStarted; DeciderCompleted; StateRequested lock-L; LockReleased L 7; StateCleared lock-L; DeciderScheduled")
	w.wantEffects(w.effects, LeaveLock{Lock: "L", Asked: Asked{w.s.Run, 5}})
	if len(w.s.Locks)+len(w.s.Requests) != 0 {
		t.Fatalf("left: %v, %v", w.s.Locks, w.s.Requests)
	}
}

// grant0 gives a run the place that an event of it has asked for.
func (w *world) grant0(event int64, fence uint64) {
	w.do(Granted{Key: "=.L", Asked: Asked{w.s.Run, event}, Place: schemas.LockPlace{
		WorkflowID: w.s.WorkflowID, Run: w.s.Run, EventID: event, Fence: fence, Since: w.now,
	}})
}

// A try that fails leaves nothing; one that is open when the run closes gives back what it may have got, and no more is told.
func TestTryThatFails(t *testing.T) {
	w := decided(t, setKey("lock-L", `"order-1"`, ""))
	w.since()
	for range 2 {
		w.do(Denied{Key: "=.L", Asked: Asked{w.s.Run, 5}, Cause: schemas.CauseRequirement, Value: schemas.Text(`"other"`)})
	}
	w.follows(`StateRefused lock-L REQUIREMENT_NOT_MET "other"; DeciderScheduled`)
	if len(w.s.Locks)+len(w.s.Requests) != 0 {
		t.Fatalf("left: %v, %v", w.s.Locks, w.s.Requests)
	}
	w.decide(setKey("lock-L", `"order-1"`, ""))
	w.since()
	asked := w.s.OpenRequests()[0].EventID
	w.effects = nil
	w.do(Terminate{Request: &schemas.ExecutionRequest{}})
	w.follows("WorkflowTerminated")
	if left := of[LeaveLock](w.effects); len(left) != 1 || left[0].Asked.EventID != asked {
		t.Fatalf("gives back %v", left)
	}
	w.grant0(asked, 9)
	w.follows("")
}

// The cause of a lock that is broken says who has done it.
func TestLockClearedByAWorkflow(t *testing.T) {
	w := decided(t, lockUp("L"))
	w.grant("L", 1)
	w.since()
	w.do(BreakLock{Request: &schemas.ExecutionRequest{
		Run: w.s.Run, Lock: "L", RequestID: "r.7", Origin: &schemas.RequestOrigin{Cause: schemas.CauseClearedByWorkflow, FirstRun: w.s.Run},
	}})
	w.follows("LockBroken L 1 CLEARED_BY_WORKFLOW")
}

func TestStateRequestsAreBounded(t *testing.T) {
	w := begin(t)
	w.c.OpenStates = 1
	w.decide(&schemas.GetState{Key: "a"}, &schemas.GetState{Key: "b"})
	w.follows("DeciderStarted; DeciderCompleted; StateRequested a; StateRefused b OPEN_STATE_REQUESTS_LIMIT_EXCEEDED; DeciderScheduled")
	s := w.restored()
	if d := cmp.Diff(w.s.Requests, s.Requests); d != "" || len(s.Requests) != 1 {
		t.Fatalf("(-before +restored):\n%s", d)
	}
	s.Requests[4] = s.Requests[5]
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(b); err == nil {
		t.Fatal("a snapshot with a request under another event is restored")
	}
	if got := (Config{}.Defaults()).OpenStates; got != 100 {
		t.Fatalf("got %d by default", got)
	}
}

// What a lock may not be asked for, its state key is not tried for either; and a full history takes neither.
func TestLockByItsKeyIsRefusedAsTheLockIs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(*world)
		cause   schemas.Cause
	}{
		{"too many locks", func(w *world) { w.decide(lockUp("M")); w.c.OpenLocks = 1; w.do(Signal{Name: "x"}) }, schemas.CauseOpenLocksLimit},
		{"history full", full, schemas.CauseEventLimitExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for event, d := range map[string]schemas.DecisionAttributes{
				"StateRefused lock-L ": setKey("lock-L", `"order-1"`, ""), "LockRefused L ": lockUp("L"),
			} {
				w := begin(t)
				tt.prepare(w)
				w.since()
				w.decide(d)
				w.follows("DeciderStarted; DeciderCompleted; " + event + string(tt.cause) + "; DeciderScheduled")
			}
		})
	}
}
