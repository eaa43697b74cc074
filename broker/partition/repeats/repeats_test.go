package repeats

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/schemas"
)

// A request that the run has forgotten is a repeat if the history of its chain has it: that is
// answered, and does not happen again. The run takes nothing until it is known. What the state
// itself can judge is left to it.
func TestWhatTheHistoryHasIsARepeat(t *testing.T) { // P-6
	for _, tc := range []struct {
		id, want string // "": it is left to the run
	}{
		{"first", "drop first"},
		{"second", "drop second"},
		{"stranger", "step stranger"},
		{"new", "step new"},
		{"late-5", ""},
		{"", ""},
	} {
		t.Run(tc.id, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h := newHost(t, o)
				h.record("r-0", append([]schemas.Event{begun("r-0", "")}, noted("first")...)...)
				h.record("x-1", append([]schemas.Event{begun("x-1", "")}, noted("stranger")...)...)
				h.record("r-1", begun("r-1", "r-0"))
				h.record("r-1", noted("second")...)
				if taken := h.take(tc.id); taken != (tc.want != "") {
					t.Errorf("it is taken care of: %v", taken)
				}
				if tc.want == "" {
					h.wantDid("left to the run")
				} else {
					h.wantDid("it has come", tc.want)
				}
			})
		})
	}
}

// A run that has forgotten nothing judges each request itself.
func TestARunThatForgetsNothing(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		h.run.State.RequestIDs = nil
		h.record("r-0", append([]schemas.Event{begun("r-0", "")}, noted("first")...)...)
		if h.take("first") {
			t.Error("it is looked for in the history")
		}
	})
}

// A request that cannot be looked for yet, since the history has not all that the run has, stays
// before those that came later. So does one during whose look the run ended in favour of the next.
func TestARequestKeepsItsPlace(t *testing.T) { // P-4
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		h.record("r-0", append([]schemas.Event{begun("r-0", "")}, noted("first")...)...)
		e, later := h.request("first"), h.request("second")
		h.run.Mailbox = []*actor.Message{later}
		h.run.Pending = []actor.Group{{}}
		o.Do(func() {
			if !h.rp.Take(h.run, e) || !h.marked {
				t.Error("nobody looks when it can be looked for")
			}
		})
		if want := []*actor.Message{e, later}; !slices.Equal(h.run.Mailbox, want) {
			t.Errorf("it has lost its place before what came later")
		}
		h.wantDid("before the history has all")

		h.run.Pending, h.run.Mailbox, h.run.Decider.Queued = nil, []*actor.Message{later}, false
		n := h.request("new")
		o.Do(func() {
			if !h.rp.Take(h.run, n) {
				t.Error("it is not looked for")
			}
			h.run.State.Status = schemas.StatusContinuedAsNew
		})
		if want := []*actor.Message{n, later}; !slices.Equal(h.run.Mailbox, want) {
			t.Errorf("it has lost its place in the next run")
		}
		h.wantDid("it is for the next run")
	})
}

// No request is taken for another one: what the hash of an id finds is read. A record that is gone
// is believed to have it.
func TestAHashIsNoProof(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		other := h.record("r-0", append([]schemas.Event{begun("r-0", "")}, noted("first")...)...)
		for id, sequence := range map[string]uint64{"alike": other, "gone": other + 100} {
			m := newChain("r-0", 0, 0)
			h.rp.index.enter("w", m)
			hash := h.rp.index.hash(execution.RequestID{ID: id})
			h.rp.index.add(m, placedID{hash: hash, sequence: sequence}, o.Env.Now())
			h.take(id)
			h.wantDid(id, map[string]string{"alike": "step alike", "gone": "drop gone"}[id])
		}
	})
}

// Once a chain has an index, what is committed is added to it. Where there is no room the oldest
// ids go first, and it can be told since when they are known; ten minutes later the rest goes too.
func TestTheOldestIsForgottenFirst(t *testing.T) { // P-6
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		h.rp.index = newIndex(200, 1)
		h.record("r-0", begun("r-0", ""))
		h.record("r-1", begun("r-1", "r-0"))
		if h.take("new"); h.rp.Since("w") != 0 {
			t.Fatal("there was room for all")
		}
		h.wantDid("the first look", "step new")
		commit := func(ids ...string) {
			events := noted(ids...)
			c := &actor.Commit{Sequence: h.record("r-1", events...)}
			c.Events = events
			o.Do(func() { h.rp.Note(h.run, c) })
		}
		early := o.Env.Now()
		for i := range 30 {
			var ids []string
			for j := range 10 {
				ids = append(ids, fmt.Sprint("id-", 10*i+j))
			}
			commit(ids...)
		}
		for _, tc := range []struct {
			id   string
			want []string // nil: it is new, as the index alone says
		}{
			{"id-299", []string{"drop id-299"}}, {"id-200", []string{"drop id-200"}}, {"id-0", nil},
		} {
			h.take(tc.id)
			h.wantDid("there was no room", tc.want...)
		}
		if since := h.rp.Since("w"); since <= early || since >= o.Env.Now() {
			t.Errorf("the ids are known since %v, want after %v", since, early)
		}
		o.Wait(6 * time.Minute)
		commit("young")
		o.Wait(6 * time.Minute)
		o.Do(h.rp.Age)
		h.take("young")
		h.wantDid("six minutes old", "drop young")
		if h.take("id-299") || h.rp.Len() > chainIDs+1 {
			t.Errorf("what is twelve minutes old is still there: %d", h.rp.Len())
		}
	})
}

// A run that has closed is asked whether it, or its chain, has had a request. One whose state
// cannot be told has had none.
func TestWhatAClosedRunHasHad(t *testing.T) {
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		h.record("r-0", append([]schemas.Event{begun("r-0", "")}, noted("first")...)...)
		h.record("r-1", append([]schemas.Event{begun("r-1", "r-0")}, noted("second")...)...)
		h.run.State.Status = schemas.StatusCompleted
		for id, want := range map[string]bool{
			"first": true, "second": true, "late-5": true, "new": false, "": false,
		} {
			answers := []bool{}
			o.Do(func() {
				h.rp.HadBefore(h.run, execution.RequestID{ID: id}, func(known bool) {
					answers = append(answers, known)
				})
			})
			if !slices.Equal(answers, []bool{want}) {
				t.Errorf("%q: got %v, want %v once", id, answers, want)
			}
		}
	})
}

// A workflow id is unused if the history has no run of it and none began since. Until the ids are
// listed nobody knows, so none is.
func TestUnusedIDs(t *testing.T) { // ADR 0030
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h := newHost(t, o)
		h.record("r-0", begun("r-0", ""))
		if h.rp.Unused("v") {
			t.Error("an id is unused before they are listed")
		}
		o.Do(h.rp.List)
		if h.rp.Unused("w") || !h.rp.Unused("v") {
			t.Errorf("w has a run, and v has none: got %v, %v", h.rp.Unused("w"), h.rp.Unused("v"))
		}
		if h.rp.Begun("v"); h.rp.Unused("v") {
			t.Error("v has begun, and is unused")
		}
	})
}
