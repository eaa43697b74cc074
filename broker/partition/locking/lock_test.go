package locking_test

import (
	"errors"
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/schemas"
)

// Who asks first has the lock, and each time it is given back the next in line is told, and nobody
// else. What is asked is held until the key has it.
func TestTheFirstToAskHasTheLock(t *testing.T) { // P-13
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o, "a", "b", "c")
		o.Do(h.keys.Own)
		o.Do(func() {
			h.ask("a", 5)
			h.ask("b", 6)
			h.ask("c", 7)
			if !h.keys.Busy() || !h.keys.Locking(h.runs["c"]) || h.said != nil {
				t.Errorf("the key is being changed: got %v, and %q", h.keys.Busy(), h.said)
			}
		})
		for _, step := range []struct {
			leaves string
			id     int64
			want   []string
		}{
			{"", 0, []string{"a LockAcquired", "a done", "b done", "c done"}},
			{"a", 5, []string{"b LockAcquired"}},
			{"b", 6, []string{"c LockAcquired"}},
			{"c", 7, nil},
		} {
			if step.leaves != "" {
				h.said = nil
				o.Do(func() { h.letGo(step.leaves, step.id) })
			}
			h.wantSaid("left: "+step.leaves, step.want...)
			if h.keys.Busy() || h.keys.Locking(h.runs["c"]) {
				t.Errorf("after %q left: the key is still being changed", step.leaves)
			}
		}
		if r := h.read(); r != nil {
			t.Errorf("nobody wants the lock, and its key has %+v", r)
		}
	})
}

// A workflow that clears the key of a lock breaks it: the holder is asked, once in effect, and the
// workflow is answered when the holder has it no more. The next in line is told once.
func TestABrokenLock(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o, "a", "b", "c")
		o.Do(h.keys.Own)
		o.Do(func() { h.ask("a", 5); h.ask("b", 5) })
		h.said = nil
		breaks := execution.StateRequest{
			EventID: 9, At: h.Now(), Request: &schemas.StateRequested{
				Decision: schemas.DecideClearState, Key: schemas.LockState("L"),
			},
		}
		o.Do(func() { h.want("c", breaks, false) })
		if len(h.said) != 0 || len(h.broken) == 0 {
			t.Fatalf("the holder has not let go: got %q and %d requests", h.said, len(h.broken))
		}
		id := h.broken[0].RequestID
		for _, q := range h.broken {
			if q.WorkflowID != "a" || q.Run != "a-1" || q.Lock != "L" || q.RequestID != id {
				t.Errorf("asked for the end of another lock, or as if for the first time: %+v", q)
			}
		}
		o.Do(func() { h.letGo("a", 5) })
		h.wantSaid("the holder has let go", "b LockAcquired", "c StateCleared", "c done")
		// repeated after a crash, it is not for those who got the lock since then
		h.said, h.broken = nil, nil
		o.Do(func() { h.want("c", breaks, true) })
		h.wantSaid("repeated", "c StateCleared", "c done")
		if len(h.broken) != 0 {
			t.Errorf("the next holder is asked to let go: %+v", h.broken[0])
		}
	})
}

// A new owner compares what it finds in the key with the histories, and mends what a crash has cut
// short, and what others have done to the key.
func TestWhatACrashHasCutShort(t *testing.T) { // P-13
	place := func(wid string, fence uint64) schemas.LockPlace {
		return schemas.LockPlace{
			WorkflowID: wid, Run: wid + "-1", EventID: 5, Fence: fence, Since: 1,
		}
	}
	record := func(holder schemas.LockPlace, waiters ...schemas.LockPlace) *schemas.LockRecord {
		return &schemas.LockRecord{
			V: schemas.Version, Lock: "L", Limit: 1, Next: 11,
			Holders: []schemas.LockPlace{holder}, Waiters: waiters,
		}
	}
	const waits, holds, neither = 0, 9, -1
	for _, tc := range []struct {
		name     string
		a        int            // what a does by its history
		status   schemas.Status // of a
		in, then *schemas.LockRecord
		lost     bool // the key is lost once the owner has seen it
		holder   string
		said     []string
	}{
		{
			name: "nothing", a: holds, status: schemas.StatusOpen,
			in: record(place("a", 9)), holder: "a",
		},
		{
			name: "the word that it holds the lock", a: waits, status: schemas.StatusOpen,
			in: record(place("a", 9)), holder: "a", said: []string{"a LockAcquired"},
		},
		{
			name: "that it lets go", a: neither, status: schemas.StatusOpen,
			in: record(place("a", 9)),
		},
		{
			name: "that it lets go as it ends", a: holds, status: schemas.StatusTerminated,
			in: record(place("a", 9), place("b", 0)), holder: "b", said: []string{"b LockAcquired"},
		},
		{
			name: "that it leaves the line as it ends", a: waits, status: schemas.StatusFailed,
			in: record(place("x", 9), place("a", 0)), holder: "x",
		},
		{
			name: "the key", a: holds, status: schemas.StatusOpen,
			in: record(place("a", 9)), lost: true, holder: "a",
		},
		{
			name: "the key, and others were faster", a: holds, status: schemas.StatusOpen,
			in: record(place("a", 9)), then: record(place("x", 10)),
			holder: "x", said: []string{"a LockBroken"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h := newHost(t, o, "a", "b", "x")
				if h.runs["a"].State.Status = tc.status; tc.a != neither {
					h.has("a", uint64(tc.a))
				}
				h.has("b", 0)
				if h.has("x", 9); tc.then != nil {
					h.has("x", 10)
				}
				h.store(tc.in)
				o.Do(h.keys.Own)
				if tc.lost || tc.then != nil {
					// by one write: the owner answers the first with one of its own
					h.store(tc.then)
				}
				o.Do(func() {})
				got := ""
				if r := h.read(); r != nil {
					got = r.Holders[0].WorkflowID
					if len(r.Holders) != 1 || len(r.Waiters) != 0 {
						t.Errorf("somebody is left in the key: %+v", r)
					}
				}
				if got != tc.holder || h.keys.Busy() {
					t.Errorf("%q holds the lock, want %q; busy: %v", got, tc.holder, h.keys.Busy())
				}
				h.wantSaid("it is mended", tc.said...)
			})
		})
	}
}

// What is decided and not in the history yet changes no key: it may never come to pass.
func TestAKeyWaitsForTheHistory(t *testing.T) { // P-13
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o, "a")
		h.store(&schemas.LockRecord{
			V: schemas.Version, Lock: "L", Limit: 1, Next: 10,
			Holders: []schemas.LockPlace{
				{WorkflowID: "a", Run: "a-1", EventID: 5, Fence: 9, Since: 1},
			},
		})
		h.waits = true
		o.Do(h.keys.Own)
		if h.read() == nil {
			t.Fatal("the place of a run that lets go is taken out before the history says so")
		}
		o.Do(func() { h.waits = false; h.waiting() })
		if r := h.read(); r != nil {
			t.Errorf("the run has let go, and the key has %+v", r)
		}
	})
}

// An owner whose claim is over, or that was followed by another one, changes nothing and tells
// nothing. It ends when it hears of the other.
func TestAnOwnerThatIsOver(t *testing.T) { // P-13
	for _, tc := range []struct {
		name   string
		end    func(h *fakeHost)
		failed bool
	}{
		{"whose claim has run out", func(h *fakeHost) { h.expired = true }, false},
		{"that was followed", func(h *fakeHost) { fence(h.t, h.o) }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h := newHost(t, o, "a")
				tc.end(h)
				h.has("a", 0)
				r := h.runs["a"]
				o.Do(func() { h.keys.EnterLock(r, r.State.Locks[key], nil, true) })
				if r := h.read(); r != nil {
					t.Errorf("the key has %+v", r)
				}
				if errors.Is(h.failed, env.ErrNewerFence) != tc.failed {
					t.Errorf("it has failed with %v, want a newer fence: %v", h.failed, tc.failed)
				}
				h.wantSaid("it is over")
			})
		})
	}
}
