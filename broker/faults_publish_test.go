package broker_test

import (
	"cmp"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/droverhq/drover/internal/cutwire"
)

// Every n-th publish is tried; 1 tries all. The default is what fits into a run of all tests.
var everyPublish = flag.Int("publishes", 0, "faults: try every n-th publish of each role; 0 = a short share, 1 = all of them")

const (
	shortShare = 48 // of all publishes of a process
	// halfShare is that of tests which name the publishes: after one is before the next, so deaths before and after every second one
	// are deaths at every place.
	halfShare = 2
)

// tried are the publishes of n that a test tries with a fault, the kind-th of so many kinds: every so many-th, at least one, and others
// for each kind.
func tried(n, share, kind, kinds int) (some []int) {
	step := min(cmp.Or(*everyPublish, share), n)
	for i := kind * step / kinds; i < n; i += step {
		some = append(some, i+1)
	}
	return some
}

// faultKinds is what becomes of one publish.
var faultKinds = []struct {
	name    string
	verdict cutwire.Verdict
	dies    bool
}{
	{"executed, the answer is lost", cutwire.Unanswered, false},
	{"lost", cutwire.Swallow, false},
	{"executed twice", cutwire.Twice, false},
	{"late by 5 s", cutwire.Late, false},
	{"executed, then the process dies", cutwire.CutAfter, true},
	{"the process dies before", cutwire.CutBefore, true},
}

// Whatever becomes of any one publish of any process, the reference workflow ends with the same result, and all that must
// happen once happens once.
func TestEveryPublish(t *testing.T) { // P-1, P-5, P-6, P-7, P-10, I3, I5, I6, I10
	publishes := countPublishes(t)
	cases, hit, lost := 0, 0, int64(0)
	for _, role := range roles {
		for k, kind := range faultKinds {
			t.Run(role+"/"+kind.name, func(t *testing.T) {
				for _, n := range tried(publishes[role], shortShare, k, len(faultKinds)) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						lost += onePublish(t, role, n, kind.verdict, kind.dies, &hit)
						cases++
					})
				}
			})
		}
	}
	t.Logf("%v publishes; %d cases, of which %d met their publish; %d answers were lost", publishes, cases, hit, lost)
	if cases-hit > 1+cases/10 {
		t.Fatalf("only %d of %d faults were injected: the runs differ too much", hit, cases)
	}
}

// onePublish runs the reference workflow with one fault.
func onePublish(t *testing.T, role string, n int, verdict cutwire.Verdict, dies bool, hit *int) (lost int64) {
	defer runtime.GC() // the client library keeps timers for the whole process, which belong to this bubble
	virtually(t, 1, func(t *testing.T, f *fleet) {
		seen := atomic.Int64{}
		var what atomic.Pointer[string]
		r := refer(f, map[string]func(string, []byte) cutwire.Verdict{role: func(subj string, _ []byte) cutwire.Verdict {
			if seen.Add(1) == int64(n) {
				what.Store(&subj)
				if verdict == cutwire.Twice && strings.HasPrefix(subj, "$O.") {
					// NATS's object store takes a doubled chunk for a part of the object. Neither TCP nor the client doubles one.
					return cutwire.Pass
				}
				return verdict
			}
			return cutwire.Pass
		}})
		defer r.stop()
		result := r.drive()
		if s := what.Load(); s != nil {
			*hit++
			t.Logf("publish %d: %s", n, *s)
		}
		r.want(result, dies && role == roleActivity)
		lost = r.lost.Load()
	})
	return lost
}

// countPublishes runs the reference workflow without a fault.
func countPublishes(t *testing.T) map[string]int {
	publishes := map[string]int{}
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var counts [4]atomic.Int64
		judge := map[string]func(string, []byte) cutwire.Verdict{}
		for i, role := range roles {
			judge[role] = func(string, []byte) cutwire.Verdict { counts[i].Add(1); return cutwire.Pass }
		}
		r := refer(f, judge)
		defer r.stop()
		r.want(r.drive(), false)
		for i, role := range roles {
			publishes[role] = int(counts[i].Load())
		}
	})
	return publishes
}
