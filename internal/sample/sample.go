// Package sample leaves tests out where -short is given.
//
// The race detector makes a fleet in virtual time seven times as slow, and what it looks for does not depend on which of some hundred faults a
// test tries. So make test runs all of them without it, and a quarter of them, others each time, with it. What starts such a fleet for a test
// calls OneOfFour; packages that have one are listed in the Makefile, or make test would not run all of their tests.
package sample

import (
	"math/rand/v2"
	"testing"
)

// OneOfFour skips t three of four times with -short.
func OneOfFour(t *testing.T) {
	t.Helper()
	if testing.Short() && rand.IntN(4) > 0 {
		t.Skip("one of four such tests is run with -short")
	}
}
