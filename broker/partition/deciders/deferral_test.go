package deciders

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/internal/virtual"
)

// Each decision in a row that comes too late costs its type more of those that are waited for, up to
// 64; one that comes in time ends that. Other types do not pay for it, nor do records of the other
// kind.
func TestPatienceWithSlowDeciders(t *testing.T) { // ADR 0020
	d := NewDeferrals(&fakeHost{})
	skipped := func() (n int) {
		for d.Skip("slow", false) {
			n++
		}
		return n
	}
	var got []int
	for range 8 {
		d.Note(forOthers, "slow", false)
		got = append(got, skipped())
	}
	if want := []int{1, 2, 4, 8, 16, 32, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v decisions that are not waited for, want %v", got, want)
	}
	d.Note(forOthers, "slow", false)
	if d.Skip("other", false) || d.Failing("other", false) {
		t.Error("a type pays for another")
	}
	if d.Skip("slow", true) || d.Failing("slow", true) {
		t.Error("what alarms have caused pays for what did not wait for so long")
	}
	if d.Note(forAlarms, "slow", false); !d.Failing("slow", true) || !d.Skip("slow", true) {
		t.Error("what alarms have caused pays nothing for a decision that came too late even for it")
	}
	d.Note(forOthers, "slow", true)
	if n := skipped(); n != 0 {
		t.Errorf("after a decision in time %d are not waited for, want 0", n)
	}
}

// A record waits for at most 20 ms, or 200 ms if only alarms caused it; the first end counts.
func TestDeferralsEnd(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		h := &fakeHost{}
		d := NewDeferrals(h)
		var short, long, shortened Deferral
		d.Begin(&short, 1, false)
		d.Begin(&long, 2, true)
		d.Begin(&shortened, 3, true)
		d.Shorten(&shortened, 3)
		time.Sleep(deferFor)
		h.run()
		if want := []uint64{1, 3}; !slices.Equal(h.over, want) {
			t.Errorf("after %v the asks %v are over, want %v", deferFor, h.over, want)
		}
		time.Sleep(alarmDefer)
		h.run()
		h.run()
		if want := []uint64{1, 3, 2, 3}; !slices.Equal(h.over, want) || len(h.later) != 0 {
			t.Errorf("after %v the asks %v are over, want %v; %d timers are left", alarmDefer, h.over, want, len(h.later))
		}
	})
}

// The transition table does what a model says that has a flag for each property.
func TestDeferralMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var waits, long, done bool
		var got Deferral
		for n := range rapid.IntRange(1, 20).Draw(t, "steps") {
			e := deferralEvent(rapid.IntRange(0, int(deferralEvents)-1).Draw(t, "event"))
			got.on(e)
			switch {
			case (e == deferShort || e == deferLong) && !waits && !done:
				waits, long = true, e == deferLong
			case e == shorten && waits:
				long = false
			case e == endWait && waits:
				waits, done = false, true
			case e == written:
				done = false
			}
			if got.Waits() != waits || got.HasWaited() != done || waits && (got == forAlarms) != long {
				t.Fatalf("step %d, event %d: got state %d, want waits %t, for alarms %t, has waited %t", n, e, got, waits, long, done)
			}
		}
	})
}
