package coroutine_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/workflow/internal/coroutine"
)

func charge(r *rig) { _ = r.call("activity charge#1") }

func TestStacks(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.Go("main", func(c *coroutine.Coroutine) {
			c.Go(func(*coroutine.Coroutine) { charge(r) })
			c.Go(func(*coroutine.Coroutine) {})
			c.Park("timer#1")
		})
		r.run()
		r.Go("u1", func(*coroutine.Coroutine) {})
		all := r.Stacks()
		var got []string
		for _, w := range all {
			got = append(got, w.Name+" "+w.Why)
		}
		if strings.Join(got, ", ") != "main timer#1, 1 activity charge#1, u1 " {
			t.Fatalf("got %q", got)
		}
		one := all[1].Stack.String()
		if !strings.HasPrefix(one, "coroutine_test.(*rig).call (rig_test.go:") || !strings.Contains(one, "\ncoroutine_test.charge (stacks_test.go:") {
			t.Errorf("got %s", one)
		}
		for _, hidden := range []string{"goexit", "begin", "Park", "chanrecv", "testing"} {
			if strings.Contains(one, hidden) {
				t.Errorf("%s stands in\n%s", hidden, one)
			}
		}
		if !strings.HasPrefix(all[0].Stack.Line(), "stacks_test.go:") || all[2].Stack.Line() != "" {
			t.Errorf("got %q and %q", all[0].Stack.Line(), all[2].Stack.Line())
		}
	})
}
