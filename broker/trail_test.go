package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
)

// A backlog of starts is met by a worker: the records of each run stand far from each other, and are read one by one, whatever becomes of the
// questions. By the subject the server would look through all that lies between.
func TestRunsOfABacklogAreReadByTheirRecords(t *testing.T) { // P-2
	const n = 300
	for _, tc := range []struct {
		name    string
		verdict cutwire.Verdict
	}{
		{"all is well", cutwire.Pass}, {"question lost", cutwire.Swallow}, {"asked twice", cutwire.Twice}, {"connection lost", cutwire.Break},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				subjects, one := readsOf(bySubject, pass)
				records, two := readsOf(bySequence, func(nth int64) cutwire.Verdict {
					if nth == n/2 {
						return tc.verdict
					}
					return cutwire.Pass
				})
				f.node("a", func(subj string, body []byte) cutwire.Verdict { return max(one(subj, body), two(subj, body)) },
					func(o *broker.Options) { o.CachedRuns = 1 })
				f.starts(n)
				f.decider("order", func(d *decisionTask) string {
					if d.has("Signal") {
						return complete
					}
					return "[" + scheduleActivity("a", "") + "]"
				})
				time.Sleep(time.Minute)
				subjects.Store(0)
				records.Store(0)
				for i := range n {
					f.tell(fmt.Sprintf("drover.default.signal.w%d.go", i), "")
				}
				time.Sleep(30 * time.Second)
				// They are decided in any order: of some the two records stand beside each other.
				if got, by := records.Load(), subjects.Load(); got < 2*n*3/4 || got > 2*n+200 || by > n/4 {
					t.Errorf("%d runs of two records were read by %d questions for a record and %d for a subject; want two for most, and one for few", n, got, by)
				}
				f.haveCompleted(n)
			})
		})
	}
}
