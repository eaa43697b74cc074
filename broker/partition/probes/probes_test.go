package probes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/probes"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// watched is for how long it is looked what becomes of what a worker has. No call is due at its
// end.
const watched = deciders.ProbeAfter*4 + deciders.ProbeAfter/2

// A worker is called while it has, or may have, something for longer than a moment, and is left
// alone when it has answered. One that listens loses nothing.
func TestWhoIsCalled(t *testing.T) { // ADR 0036
	for name, c := range map[string]struct {
		waits func(*rig)
		want  bool
	}{
		"it has nothing":             {func(*rig) {}, false},
		"it has a decision":          {func(k *rig) { k.asks("o", "w") }, true},
		"it has an offer":            {func(k *rig) { k.offers("o", "w") }, true},
		"anybody may have it":        {func(k *rig) { k.asks("o", "") }, true},
		"anybody may have the offer": {func(k *rig) { k.offers("o", "") }, true},
		"another has a decision":     {func(k *rig) { k.asks("o", "x") }, false},
		"another has an offer":       {func(k *rig) { k.offers("o", "x") }, false},
		"of another type": {func(k *rig) {
			k.asks("o", "")
			k.decisions.Asks[1].State.Start.WorkflowType = "other"
		}, false},
		"of another list": {func(k *rig) {
			k.offers("o", "").Activity.Scheduled.List = "other"
		}, false},
		"anybody may have it, for long": {func(k *rig) {
			k.asks("o", "").At = k.host.Now().Add(-schemas.Duration(2 * deciders.YoungTask))
		}, false},
		"asked by the owner before": {func(k *rig) { k.asks("o", "w").Former = "former." }, false},
		"answered in time": {func(k *rig) {
			k.asks("o", "w")
			k.Loop.After(deciders.ProbeAfter/2, func() { clear(k.decisions.Asks) })
		}, false},
		"the owner leaves":  {func(k *rig) { k.asks("o", "w"); k.host.leaving = true }, false},
		"the owner is done": {func(k *rig) { k.asks("o", "w"); k.host.sealed = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				k := newRig(t, true)
				k.do(watched, func() {
					c.waits(k)
					k.Schedule(deciders.ProbeAfter)
				})
				if len(k.calls) > 0 != c.want {
					t.Fatalf("called after %v, want a call: %t", k.calls, c.want)
				}
				if c.want && k.calls[0] < deciders.ProbeAfter {
					t.Errorf("called after %v, when it may be at work", k.calls[0])
				}
				before := len(k.calls)
				k.do(10*time.Second, func() { // what it had is answered
					clear(k.decisions.Asks)
					for _, f := range k.dispatch.OpenOffers() {
						k.dispatch.EndOffer(f)
					}
				})
				if len(k.calls) > before {
					t.Errorf("called after %v, when it had nothing", k.calls[before:])
				}
				if len(k.asked)+len(k.offered)+len(k.stored) > 0 {
					t.Errorf("what it has is given to others: decisions of %q, tasks of %q, %q",
						k.asked, k.offered, k.stored)
				}
			})
		})
	}
}

// A worker that is waited for is called again, less and less often.
func TestCalledAgain(t *testing.T) { // ADR 0036
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t, true)
		k.do(10*time.Second, func() {
			k.asks("o", "w")
			k.Schedule(deciders.ProbeAfter)
		})
		if len(k.calls) < 3 {
			t.Fatalf("called after %v", k.calls)
		}
		first, last := k.calls[1]-k.calls[0], k.calls[len(k.calls)-1]-k.calls[len(k.calls)-2]
		if first < deciders.ProbeAfter || last <= first {
			t.Errorf("called after %v, want less and less often", k.calls)
		}
	})
}

// What a worker that is gone had, or may have had, is given to others at once, and once: decisions
// as the same tasks, offers that are old enough by way of their lists. What others have is left to
// them.
func TestWorkerThatIsGone(t *testing.T) { // ADR 0036
	virtual.Run(t, func(t *testing.T) {
		k := newRig(t, false)
		k.do(deciders.ProbeAfter, func() {
			k.asks("its", "w")
			k.asks("young", "")
			k.asks("old", "").At = k.host.Now().Add(-schemas.Duration(2 * deciders.YoungTask))
			k.asks("another's", "x")
			k.asks("former", "w").Former = "former."
			k.offers("its task", "w")
			k.offers("another's task", "x")
			k.offers("anybody's task", "")
			k.Schedule(deciders.ProbeAfter)
		})
		k.do(watched, func() { k.offers("new task", "") })
		slices.Sort(k.asked)
		if want := []string{"its of-its", "young of-young"}; !slices.Equal(k.asked, want) {
			t.Errorf("asked again: %q, want %q", k.asked, want)
		}
		if want := []string{"its task"}; !slices.Equal(k.offered, want) {
			t.Errorf("offered to others: %q, want %q", k.offered, want)
		}
		if want := []string{"anybody's task"}; !slices.Equal(k.stored, want) {
			t.Errorf("put on the list: %q, want %q", k.stored, want)
		}
		var left []string
		for _, f := range k.dispatch.OpenOffers() {
			left = append(left, f.Run.WorkflowID)
		}
		slices.Sort(left)
		if want := []string{"another's task", "its task", "new task"}; !slices.Equal(left, want) {
			t.Errorf("on offer are %q, want %q", left, want)
		}
	})
}

// Nothing is given to others by an owner that leaves, and of a worker that has said goodbye.
func TestWhoIsNotMissed(t *testing.T) { // ADR 0036
	for name, change := range map[string]func(*rig){
		"the worker has left": func(k *rig) { k.decisions.Deciders.Workers.Leave("w") },
		"the owner leaves":    func(k *rig) { k.host.leaving = true },
		"the owner is done":   func(k *rig) { k.host.sealed = true },
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				k := newRig(t, false)
				k.do(watched, func() {
					k.asks("o", "w")
					k.offers("p", "w")
					k.Schedule(deciders.ProbeAfter)
					k.Loop.After(deciders.ProbeAfter+probes.LeaveTaking/2, func() { change(k) })
				})
				if len(k.asked)+len(k.offered)+len(k.stored) > 0 {
					t.Errorf("what it has is given to others: decisions of %q, tasks of %q, %q",
						k.asked, k.offered, k.stored)
				}
			})
		})
	}
}
