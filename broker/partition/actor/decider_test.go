package actor

import (
	"testing"

	"pgregory.net/rapid"
)

// The transition table does what a model says that has a flag for each property. Whatever has
// happened, there is a decision task while one is on its way, what somebody has was sent, and no
// run that is asked stands in the backlog.
func TestAskMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ask *Ask
		var has, backlog bool
		var got Decider
		for n := range rapid.IntRange(1, 20).Draw(t, "steps") {
			e := rapid.SampledFrom([]string{
				"sent", "sent again", "taken", "over", "entered", "left",
			}).Draw(t, "event")
			switch e {
			case "sent":
				ask, has, backlog = &Ask{}, false, false
				got.Sent(ask, false)
			case "sent again":
				ask, has, backlog = &Ask{}, true, false
				got.Sent(ask, true)
			case "taken":
				has = ask != nil
				got.Taken()
			case "over":
				ask, has = nil, false
				got.Over()
			case "entered":
				backlog = backlog || ask == nil
				got.EnterBacklog()
			case "left":
				backlog = false
				got.LeaveBacklog()
			}
			s := got.Asking
			if got.Ask != ask || s.Open() != (ask != nil) || s.Confirmed() != has ||
				s.Unconfirmed() != (ask != nil && !has) || s.NoPoller() != backlog || s.None() != (ask == nil && !backlog) {
				t.Fatalf("step %d, %s: got state %d of %v, want the task %v, somebody has it: %t, "+
					"in the backlog: %t", n, e, s, got.Ask, ask, has, backlog)
			}
			if s >= askingStates || s.Confirmed() && !s.Open() || s.NoPoller() && s.Open() {
				t.Fatalf("step %d, %s: state %d contradicts itself", n, e, s)
			}
		}
	})
}

// A run that is asked although the timer of its backoff still runs stays in memory until that has
// settled it.
func TestABackoffKeepsTheRunInMemory(t *testing.T) {
	r := &Run{}
	r.Decider.BackingOff = true
	r.Decider.Sent(&Ask{}, false)
	if r.Decider.Over(); r.Idle() || !r.Decider.Asking.None() {
		t.Errorf("got state %d, idle: %t; want that nobody is asked, and that the run is kept",
			r.Decider.Asking, r.Idle())
	}
	if r.Decider.BackingOff = false; !r.Idle() {
		t.Error("after its timer the run is kept")
	}
}
