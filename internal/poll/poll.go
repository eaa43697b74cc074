// Package poll waits in tests for what has no event to wait for: real servers and processes, in
// real time.
//
// It is for test files only.
package poll

import (
	"testing"
	"time"
)

// every leaves the processor to those that are waited for.
const every = 10 * time.Millisecond

// Until asks until ok, and returns how long that took. The test ends if that is longer than limit.
func Until(t testing.TB, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ; !ok(); <-tick.C {
		if time.Since(began) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
	return time.Since(began)
}
