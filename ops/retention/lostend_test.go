package retention_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// The history loses its end while the janitor lives and keeps its connection, as after the power loss of other servers of a cluster, and
// is as long as before at the next pass. A run whose close is gone is open again, and an open run is never purged.
func TestOpenRunLaterALostEnd(t *testing.T) {
	live(t, retention.Options{Default: "0"}, func(h *house) {
		t := h.t
		ctx := t.Context()
		var again atomic.Bool
		w := h.Client.Deciders(nil)
		w.Register("x", decider.Func(func(context.Context, *decider.Task) ([]schemas.Decision, error) {
			if again.Load() {
				return nil, nil // what it completed for the first time, an outcome that came directly, does not come again
			}
			return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
		}))
		h.Go(w)
		body, err := schemas.MarshalJSON(&schemas.StartRequest{V: schemas.Version, WorkflowID: "a", RequestID: "q", Run: "a-run", Type: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := natsconn.Of(h.Client).PublishSync(ctx, ns.In(0, "a", "start"), natsconn.Addressed(ns.In(0, "a", "start")), body); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		h.Await("a", schemas.EventWorkflowSuccess)
		time.Sleep(5 * time.Second)
		r := h.pass()
		js := natsconn.Of(h.Client).JetStream()
		s, err := js.Stream(ctx, ns.StreamHistory(0))
		if err != nil {
			t.Fatal(err)
		}
		closed := s.CachedInfo().State.LastSeq
		t.Logf("read: %+v; the record that closed it is %d", r, closed)

		// the end is lost: the record that began the run and that which closed it
		c := s.CachedInfo().Config
		if err := js.DeleteStream(ctx, ns.StreamHistory(0)); err != nil {
			t.Fatal(err)
		}
		c.FirstSeq = closed - 1
		if _, err := js.CreateStream(ctx, c); err != nil {
			t.Fatal(err)
		}
		again.Store(true)
		h.run("other", "witness-0", says{Retention: []string{"forever"}}) // its owner finds out, and takes over anew
		time.Sleep(5 * time.Second)
		h.settle()
		d, err := h.Client.Run("a", "").Describe(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("before the pass workflow a is %s", d.Execution.Status)
		if m, err := natsconn.Of(h.Client).GetSeq(ctx, ns.StreamHistory(0), closed); err == nil {
			t.Logf("record %d is on %s, status %q", closed, m.Subject, m.Header.Get(schemas.StatusHeader))
		}
		r = h.pass()
		t.Logf("%+v", r)
		time.Sleep(10 * time.Second)
		if h.runs("a") == 0 {
			t.Errorf("the history of an open run is purged")
		}
	})
}
