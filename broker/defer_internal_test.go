package broker

import (
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Each decision in a row that comes too late costs its type more of those that are waited for, up to 64; one that comes in
// time ends that. Other types do not pay for it.
func TestPatienceWithSlowDeciders(t *testing.T) { // ADR 0020
	p := &partition{b: &Broker{}, lateTypes: newLate()}
	p.b.recordLimit.Store(1 << 20)
	slow := &run{state: &execution.State{Start: &schemas.WorkflowStarted{WorkflowType: "slow"}}}
	other := &run{state: &execution.State{Start: &schemas.WorkflowStarted{WorkflowType: "other"}}}
	skipped := func() (n int) {
		for ; !p.worthDeferring(slow); n++ {
		}
		return n
	}
	var got []int
	for range 8 {
		p.noteLatency(slow, false)
		got = append(got, skipped())
	}
	if want := []int{1, 2, 4, 8, 16, 32, 64, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v decisions that are not waited for, want %v", got, want)
	}
	p.noteLatency(slow, false)
	if !p.worthDeferring(other) {
		t.Error("a type pays for another")
	}
	fired := &run{state: slow.state, deferList: forAlarms, pending: []group{{alarmFired: true}}}
	if !p.worthDeferring(fired) {
		t.Error("what alarms have caused pays for what did not wait for so long")
	}
	if p.noteLatency(fired, false); p.worthDeferring(fired) {
		t.Error("what alarms have caused pays nothing for a decision that came too late even for it")
	}
	p.noteLatency(slow, true)
	if n := skipped(); n != 0 {
		t.Errorf("behind a decision in time %d are not waited for, want 0", n)
	}
}

// Tasks are offered of types that have been quick. A slow one ends that until quick ones have made up for it.
func TestOfferPolicy(t *testing.T) { // ADR 0023
	const quick, slow = quickLimit, quickLimit + 1
	for name, c := range map[string]struct {
		took []schemas.Duration
		want bool
	}{
		"unknown":                        {},
		"of unknown length":              {took: []schemas.Duration{0}},
		"slow from the first on":         {took: []schemas.Duration{slow, slow}},
		"quick":                          {took: []schemas.Duration{quick}, want: true},
		"quick after slow":               {took: []schemas.Duration{slow, quick}, want: true},
		"slow after quick":               {took: []schemas.Duration{quick, slow}},
		"a quick one does not do":        {took: []schemas.Duration{quick, slow, quick}},
		"some quick ones do":             {took: []schemas.Duration{quick, slow, quick, quick}, want: true},
		"the second slow one costs more": {took: []schemas.Duration{quick, slow, slow, quick, quick}},
		"and is made up for":             {took: []schemas.Duration{quick, slow, slow, quick, quick, quick}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOfferPolicy()
			for _, d := range c.took {
				o.took("work", d)
			}
			if got := o.isQuick("work"); got != c.want {
				t.Errorf("offered: %t, want %t", got, c.want)
			}
		})
	}
}

// A list whose workers were busy, or away, gets no offers for a moment. Others do.
func TestOfferPolicyOfLists(t *testing.T) { // ADR 0023
	virtual.Run(t, func(t *testing.T) {
		for _, c := range []struct {
			nobody bool
			pause  time.Duration
		}{{false, busyPause}, {true, absentPause}} {
			o := newOfferPolicy()
			o.refused("main", c.nobody)
			time.Sleep(c.pause - time.Nanosecond)
			if !o.isAway("main") || o.isAway("other") {
				t.Errorf("nobody=%t: main is asked again too soon, or another list is not", c.nobody)
			}
			if time.Sleep(time.Nanosecond); o.isAway("main") {
				t.Errorf("nobody=%t: main is not asked again", c.nobody)
			}
		}
	})
}
