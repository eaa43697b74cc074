// Package sample thins out the cases of a test where -short is given.
//
// The race detector makes a fleet in virtual time seven times as slow, and what it looks for does not depend on which of twenty crashes a
// test tries. So make test tries every case without it, and a quarter of them, others each time, with it. Tests use it that have four cases
// or more which differ in place, fault or size alone, and take long; a case that reaches code of its own is not to be thinned out.
package sample

import (
	"math/rand/v2"
	"testing"
)

// one of so many cases that follow each other is tried with -short.
const one = 4

// Cases are those of a test.
type Cases struct {
	t    *testing.T
	n    int // cases so far
	turn int // of the next one cases, the one that is tried
}

// Of returns the cases of t.
func Of(t *testing.T) *Cases { return &Cases{t: t} }

// Run is the Run of the test, and does nothing for three of four cases with -short. It reports whether f, if it ran, succeeded.
func (c *Cases) Run(name string, f func(*testing.T)) bool {
	c.t.Helper()
	if testing.Short() && !c.drawn(rand.IntN) {
		return true
	}
	return c.t.Run(name, f)
}

func (c *Cases) drawn(intN func(int) int) bool {
	i := c.n % one
	c.n++
	if i == 0 {
		c.turn = intN(one)
	}
	return i == c.turn
}

// Long leaves t out three of four times with -short. A test calls it that is long by itself, such as one of many days in virtual time.
func Long(t *testing.T) {
	t.Helper()
	if testing.Short() && rand.IntN(one) > 0 {
		t.Skip("one of four such tests runs with -short; make test runs all of them without the race detector")
	}
}
