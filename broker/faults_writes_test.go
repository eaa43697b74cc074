package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// judge decides what becomes of a publish.
type judge = func(subject string, body []byte) cutwire.Verdict

// overCrashes runs a test with a crash before and after every second one of the publishes to some prefixes, of which so many are on the way.
func overCrashes(t *testing.T, writes map[string]int, run func(*testing.T, judge)) {
	cases, all := 0, 0
	for name, v := range map[string]cutwire.Verdict{"before": cutwire.CutBefore, "after": cutwire.CutAfter} {
		for prefix, n := range writes {
			all += n
			for _, i := range tried(n, halfShare, 0, 1) {
				cases++
				t.Run(fmt.Sprintf("%s %s %d", name, prefix, i), func(t *testing.T) { run(t, nth(i, prefix, v)) })
			}
		}
	}
	t.Logf("%d of %d crashes; -publishes=1 tries all", cases, all)
}

// overLosses runs a test with each of n publishes to a prefix lost, or its answer, or twice, or too late; the process lives on.
func overLosses(t *testing.T, prefix string, n int, run func(*testing.T, judge)) {
	for name, v := range map[string]cutwire.Verdict{"lost": cutwire.Swallow, "answer lost": cutwire.Unanswered, "twice": cutwire.Twice, "late": cutwire.Late} {
		for i := 1; i <= n; i++ {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) { run(t, nth(i, prefix, v)) })
		}
	}
}

// startsAtLast starts a run, whose owner may come and go.
func (f *fleet) startsAtLast(id, typ string) {
	f.t.Helper()
	for f.start(`{"workflowId":"` + id + `","type":"` + typ + `","requestId":"` + id + `"}`)["error"] != nil {
		time.Sleep(100 * time.Millisecond)
	}
}

// completesAtLast is completes for a fleet whose nodes come and go: the API may answer that nobody can answer now.
func (f *fleet) completesAtLast(id string) {
	f.t.Helper()
	if !f.until(4*time.Hour, func() bool { return f.status(id) == schemas.StatusCompleted }) {
		f.t.Fatalf("%s does not complete: %v; %v", id, f.recordedTypes(id), f.api("why", `{"workflowId":"`+id+`"}`)["because"])
	}
}

// fencedWritesNothing has an owner begin a run of type one, whose first write to a prefix is lost, and fences the partition before the next.
func (f *fleet) fencedWritesNothing(prefix string) {
	f.t.Helper()
	var tries atomic.Int64
	f.node("a", func(subj string, _ []byte) cutwire.Verdict {
		if strings.HasPrefix(subj, prefix) && tries.Add(1) == 1 {
			return cutwire.Swallow
		}
		return cutwire.Pass
	})
	f.start(`{"workflowId":"w1","type":"one"}`)
	for tries.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := handover.Fence(f.t.Context(), f.post, ns, 0, 1<<40, "other"); err != nil {
		f.t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if n := tries.Load(); n != 1 {
		f.t.Fatalf("%d writes, want only the one that was lost", n)
	}
}
