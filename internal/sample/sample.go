// Package sample leaves tests out where [Env] is set.
//
// The race detector makes a fleet in virtual time seven times as slow, and what it looks for does not depend on which of some hundred faults a
// test tries. So make test runs all of them without it, and a quarter of them, others each time, with it. What starts such a fleet for a test
// calls OneOfFour; packages that have one are listed in the Makefile, or make test would not run all of their tests.
//
// It is not -short that says so: with that package rapid tries a fifth of its cases, in every package that has some.
package sample

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Env is the environment variable that has tests left out, if it is not empty.
const Env = "DROVER_TEST_SAMPLE"

// OneOfFour skips t three of four times with [Env].
func OneOfFour(t *testing.T) {
	t.Helper()
	if os.Getenv(Env) != "" && rand.IntN(4) > 0 {
		t.Skipf("one of four such tests is run with %s", Env)
	}
}
