package dispatch

import (
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

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
		}{{false, BusyPause}, {true, absentPause}} {
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
