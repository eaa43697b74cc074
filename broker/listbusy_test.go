package broker_test

import (
	"fmt"
	"testing"
	"time"

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
