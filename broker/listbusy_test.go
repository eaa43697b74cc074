package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// A list shows every open run, also those that something happens to while it is made.
func TestListOfBusyRuns(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		f.node("a", nil)
		f.decider("order", func(d *decisionTask) string { return "[]" })
		const runs = 30
		f.starts(runs)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := f.nc.Publish(ns.Signal(fmt.Sprintf("w%d", i%runs), "go"), nil); err != nil {
					t.Error(err)
				}
				if i%3 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		}()
		short, twice, worst := 0, 0, runs
		const lists = 12
		for range lists {
			var a schemas.ListResponse
			f.apiInto(&a, "list", `{"status":"open","limit":1000}`)
			seen := map[string]int{}
			for _, e := range a.Executions {
				seen[e.WorkflowID]++
			}
			if len(seen) < runs && a.Cursor == "" {
				short++
				worst = min(worst, len(seen))
			}
			if len(a.Executions) > len(seen) {
				twice++
			}
			time.Sleep(10 * time.Millisecond)
		}
		shortCounts := 0
		for range lists {
			var a schemas.CountResponse
			f.apiInto(&a, "count", `{"status":"open"}`)
			if a.Count != runs && !a.Truncated {
				shortCounts++
			}
			time.Sleep(10 * time.Millisecond)
		}
		close(stop)
		<-done
		time.Sleep(time.Second)
		if short+twice+shortCounts > 0 {
			t.Errorf("of %d lists %d miss runs (the worst has %d of %d), %d show one twice; of %d counts %d are wrong", lists, short, worst, runs, twice, lists, shortCounts)
		}
	})
}

// A list reads the headers of records. Where it has come to the end of a history it has seen the last of each run, and asks for none
// again: that would bring it whole, which is a quarter of a megabyte where inputs are large, and it is asked again while it takes long.
func TestListReadsNoRecords(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var reads atomic.Int64
		f.node("a", func(subject string, _ []byte) cutwire.Verdict {
			if strings.HasPrefix(subject, "$JS.API.DIRECT.GET."+ns.StreamHistory(0)) {
				reads.Add(1)
			}
			return cutwire.Pass
		})
		f.decider("order", func(*decisionTask) string { return "[]" })
		const runs = 30
		f.starts(runs)
		before := reads.Load()
		var a schemas.ListResponse
		f.apiInto(&a, "list", `{"limit":1000}`)
		if n := reads.Load() - before; len(a.Executions) != runs || n != 0 {
			t.Errorf("a list of %d runs has read %d records, want %d and none", len(a.Executions), n, runs)
		}
	})
}
