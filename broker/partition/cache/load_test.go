package cache_test

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/schemas"
)

// A workflow id without history has no run, and one with a history its latest run with all its
// records. What waits for a run happens once it is there, in order, and at once after that.
func TestRunsAreLoaded(t *testing.T) { // P-2
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		p := onServer(t, o)
		b, c := begins(t, o, "b"), begins(t, o, "c")
		b.signals()
		c.happens(execution.Terminate{Request: &schemas.ExecutionRequest{
			WorkflowID: "c", Run: "c-1",
		}})
		c.starts()
		b.signals()
		wants := map[string]string{"a": "has no run", "b": b.stands(), "c": c.stands()}
		first := map[string]*actor.Run{}
		o.Do(func() {
			for wid := range wants {
				p.ask(wid)
				p.wantSaid("before it is read", wid)
				first[wid] = p.InMemory(wid)
			}
		})
		o.Do(func() {
			for wid, want := range wants {
				p.wantSaid("once it is read", wid, want, "when", "known", "kept")
				p.ask(wid)
				p.wantSaid("after that", wid, "when", "known", "kept")
				if p.InMemory(wid) != first[wid] {
					t.Errorf("%s is in memory twice", wid)
				}
			}
		})
		o.Do(func() {
			for wid := range wants {
				p.wantSaid("in the end", wid)
			}
		})
	})
}
