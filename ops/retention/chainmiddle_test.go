package retention_test

import (
	"context"
	"testing"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// A chain loses its oldest runs first: the check at the end of the test, that of drover verify, finds no run without the one after it.
func TestMiddleOfAChain(t *testing.T) {
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		h := &house{Env: e, t: t, o: retention.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Partitions: 1}}
		h.another()
		w := e.Client.Deciders(nil)
		for _, typ := range []string{"other", "child"} {
			w.Register(typ, decider.Func(decide))
		}
		w.Register("chain", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, ev := range task.Events() {
				if a, ok := ev.Attributes.(*schemas.WorkflowStarted); ok {
					switch string(a.Input) {
					case `1`:
						return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: schemas.Payload(`2`)})}, nil
					case `2`:
						return []schemas.Decision{schemas.Decide(&schemas.SetRetention{Retention: "disabled"}), schemas.Decide(&schemas.ContinueAsNew{Input: schemas.Payload(`3`)})}, nil
					}
				}
			}
			return nil, nil // the third waits
		}))
		e.Go(w)
		if _, err := e.Client.Start(t.Context(), "chain", 1, nil); err != nil {
			t.Fatal(err)
		}
		h.settle()
		t.Logf("%+v", h.pass())
	})
}
