package claims_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
)

// Who watches is told of its own keys until it stops, and the others go on.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *embedded.Server) {
		a, b := join(t, s, claims.Options{Node: "a"}), join(t, s, claims.Options{Node: "b"})
		var first, second, none atomic.Int32
		count := func(n *atomic.Int32) func(string, bool) { return func(string, bool) { n.Add(1) } }
		defer a.Watch("broker.", count(&first))()
		stop := a.Watch("broker.", count(&second))
		defer a.Watch("timers.", count(&none))()
		time.Sleep(time.Second)
		b.take(t, "broker.b")
		synctest.Wait()
		stop()
		stop()
		b.take(t, "broker.c")
		synctest.Wait()
		if first.Load() != 2 || second.Load() != 1 || none.Load() != 0 {
			t.Errorf("they were told %d, %d and %d times, want 2, 1 and 0", first.Load(), second.Load(), none.Load())
		}
	})
}
