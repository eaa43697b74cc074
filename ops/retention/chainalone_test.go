package retention_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// A run that has continued as new never becomes the latest of its workflow id: whoever loads it begins its successor (P-4). Here the
// first run of a chain waits for a part of it, which is the witness of a quiet partition, and the last run need not.
func TestContinuedRunIsNotLeftAlone(t *testing.T) {
	on := func(p int, name string) string {
		for i := 0; ; i++ {
			if id := fmt.Sprintf("%s-%d", name, i); subject.Partition(id, 2) == p {
				return id
			}
		}
	}
	drovertest.Run(t, &drovertest.Options{Partitions: 2}, func(t *testing.T, e *drovertest.Env) {
		o := retention.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Partitions: 2, Default: "1"}
		h := &house{Env: e, t: t, o: o}
		h.another()
		chain, part := on(0, "c"), on(1, "p")
		w := e.Client.Deciders(nil)
		for _, typ := range []string{"other", "child"} {
			w.Register(typ, decider.Func(decide))
		}
		w.Register("rec", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, ev := range task.Events() {
				switch a := ev.Attributes.(type) {
				case *schemas.WorkflowStarted:
					switch string(a.Input) {
					case `"chain"`:
						return []schemas.Decision{schemas.Decide(&schemas.StartChild{WorkflowID: part, WorkflowType: "rec"})}, nil
					case `"second"`:
						return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: schemas.Payload(`"third"`)})}, nil
					}
					return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
				case *schemas.ChildSuccess:
					return []schemas.Decision{schemas.Decide(&schemas.ContinueAsNew{Input: schemas.Payload(`"second"`)})}, nil
				}
			}
			return nil, nil
		}))
		e.Go(w)
		c, err := e.Client.Start(t.Context(), "rec", "chain", &drover.StartOptions{ID: chain})
		if err != nil {
			t.Fatal(err)
		}
		last := h.Wait(c).Run
		h.run("rec", on(0, "another"), says{}) // pushes the end of the chain out
		// a witness of partition 0, in its history and both logs
		id := on(0, "witness")
		r := h.start("other", id, says{Retention: []string{"forever"}, Child: &says{Retention: []string{"forever"}, Hash: "witness"}, ChildID: on(0, "kid"), Stay: true})
		h.Await(id, schemas.EventChildSuccess)
		time.Sleep(time.Second)
		if err := r.Signal(t.Context(), "go", nil); err != nil {
			t.Fatal(err)
		}
		h.Wait(r)
		time.Sleep(3 * time.Minute)
		for range 3 {
			t.Logf("%+v; part %+v; chain %+v", h.pass(), h.expl(part), h.expl(chain))
			time.Sleep(30 * time.Second)
		}
		m, err := natsconn.Of(e.Client).LastBySubject(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, chain))
		if err != nil {
			t.Logf("nothing is left of the chain: %v", err)
			return
		}
		_, _, run, _ := subject.ParseHistory(m.Subject)
		t.Logf("the latest record of %s is of run %s, %q; the chain ended with run %s", chain, run, m.Header.Get(schemas.StatusHeader), last)
		if status := schemas.HeaderStatus(m.Header.Get(schemas.StatusHeader)); status == schemas.StatusContinuedAsNew {
			t.Errorf("the latest run of the id has continued as new, and its successor is purged")
		}
		before := schemas.At(time.Now())
		h.Restart(time.Second)
		d, err := e.Client.Run(chain, "").Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if d.Execution.StartedAt >= before {
			t.Errorf("run %s of the chain, which had ended, has begun a second time: it is %s since %s", d.Execution.Run, d.Execution.Status, d.Execution.StartedAt)
		}
	})
}

func (h *house) expl(id string) any {
	a, err := h.j.Explain(h.t.Context(), id, "")
	if err != nil {
		return err.Error()
	}
	return a.Run + " " + string(a.Status) + " " + a.Group + " " + a.Because
}
