// Package sample leaves tests out where [Env] is set.
//
// The race detector makes a test in virtual time many times as slow, and what it looks for does not
// depend on which of some hundred faults a test tries. So make test runs every test without it, and
// one of eight bubbles, others each time, with it. Package virtual asks here before each bubble;
// tests on drovertest and long ones without a bubble ask themselves.
//
// It is not -short that says so: with that package rapid tries a fifth of its cases, in every
// package that has some.
package sample

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Env is the environment variable that has tests left out, if it is not empty.
const Env = "DROVER_TEST_SAMPLE"

// OneOfEight skips t seven of eight times with [Env].
func OneOfEight(t *testing.T) {
	t.Helper()
	if os.Getenv(Env) != "" && rand.IntN(8) > 0 {
		t.Skipf("one of eight such tests is run with %s", Env)
	}
}
