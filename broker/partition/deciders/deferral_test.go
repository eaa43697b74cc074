package deciders

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/virtual"
)

// Each decision in a row that comes too late costs its type more of those that are waited for, up to
// 64; one that comes in time ends that. Other types do not pay for it.
func TestPatienceWithSlowDeciders(t *testing.T) { // ADR 0020
	d := NewDeferrals(&fakeHost{})
	skipped := func() (n int) {
		for d.Skip("slow") {
			n++
		}
		return n
	}
	var got []int
	for range 8 {
		d.Note("slow", false)
		got = append(got, skipped())
	}
	if want := []int{1, 2, 4, 8, 16, 32, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v decisions that are not waited for, want %v", got, want)
	}
	d.Note("slow", false)
	if d.Skip("other") || d.Failing("other") {
		t.Error("a type pays for another")
	}
	d.Note("slow", true)
	if n := skipped(); n != 0 {
		t.Errorf("after a decision in time %d are not waited for, want 0", n)
	}
}

// A record waits for at most 20 ms.
func TestDeferralsEnd(t *testing.T) { // ADR 0020
	virtual.Run(t, func(t *testing.T) {
		h := &fakeHost{}
		d := NewDeferrals(h)
		var first, second, third Deferral
		d.Begin(&first, 1)
		d.Begin(&second, 2)
		time.Sleep(deferFor / 2)
		d.Begin(&third, 3)
		time.Sleep(deferFor / 2)
		h.run()
		if want := []uint64{1, 2}; !slices.Equal(h.over, want) {
			t.Errorf("after %v the asks %v are over, want %v", deferFor, h.over, want)
		}
		time.Sleep(deferFor / 2)
		h.run()
		if want := []uint64{1, 2, 3}; !slices.Equal(h.over, want) || len(h.later) != 0 {
			t.Errorf("in the end the asks %v are over, want %v; %d timers are left", h.over, want, len(h.later))
		}
	})
}

// The transition table does what a model says that has a flag for each property.
func TestDeferralMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waiting, done bool
		var got Deferral
		for n := range rapid.IntRange(1, 20).Draw(t, "steps") {
			e := deferralEvent(rapid.IntRange(0, int(deferralEvents)-1).Draw(t, "event"))
			got.on(e)
			switch {
			case e == begin && !waiting && !done:
				waiting = true
			case e == endWait && waiting:
				waiting, done = false, true
			case e == written:
				done = false
			}
			if got.Waits() != waiting || got.HasWaited() != done {
				t.Fatalf("step %d, event %d: got state %d, want waits %t, has waited %t", n, e, got, waiting, done)
			}
		}
	})
}
