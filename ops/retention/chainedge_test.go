package retention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

// A janitor that ends before it purges a part of the stream, a server that is stopped is enough, does not leave a run that has continued
// as new as the latest of its id: the runs of a chain before its last go first.
func TestCutBeforeTheEdge(t *testing.T) {
	live(t, retention.Options{Default: "0"}, func(h *house) {
		t := h.t
		last := h.overTheEdge()
		h.o.Before = func(_, what string) error {
			t.Log("purge ", what)
			if strings.HasPrefix(what, "below") {
				return errCut
			}
			return nil
		}
		h.another()
		if _, err := h.j.Pass(t.Context()); err == nil {
			t.Fatal("want the cut")
		}
		m, err := natsconn.Of(h.Client).LastBySubject(t.Context(), ns.StreamHistory(0), ns.HistoryOfWorkflow(0, "c"))
		if err != nil {
			return
		}
		_, _, run, _ := subject.ParseHistory(m.Subject)
		t.Logf("the latest record of c is of run %s, %q; the chain ended with run %s", run, m.Header.Get(schemas.StatusHeader), last)
		before := schemas.At(time.Now())
		h.Restart(time.Second)
		d, err := h.Client.Run("c", "").Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d.Execution.StartedAt >= before {
			t.Errorf("run %s of the chain, which had completed, has begun a second time: it is %s since %s", d.Execution.Run, d.Execution.Status, d.Execution.StartedAt)
		}
	})
}

// overTheEdge leaves many runs that are to go, and a chain after them whose last run reaches over the edge of what a purge by sequence may take. It
// returns that run.
func (h *house) overTheEdge() (last string) {
	t := h.t
	t.Helper()
	long := h.start("raw", "long", says{Stay: true}) // alone, it reaches over the edge too
	for i := range 20 {
		h.run("raw", fmt.Sprint("f-", i), says{})
	}
	r := h.start("raw", "c", says{Stay: true, Again: 1})
	time.Sleep(time.Second)
	if err := r.Signal(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // the second run waits
	h.run("other", "witness-between", says{Retention: []string{"forever"}})
	if err := h.Client.Run("c", "").Signal(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	last = h.Wait(h.Client.Run("c", "")).Run
	if err := long.Signal(t.Context(), "go", nil); err != nil {
		t.Fatal(err)
	}
	h.Wait(long)
	h.Restart(time.Second) // the fence of another spell, as there is in any store
	h.settle()
	return last
}

// A run that waits for one before it, or lies on both sides, is not cut by the purge of what lies below the edge: either all its records are there, or none.
func TestRunOverTheEdgeStaysWhole(t *testing.T) {
	live(t, retention.Options{Default: "0"}, func(h *house) {
		t := h.t
		last := h.overTheEdge()
		purges := 0
		h.o.Before = func(_, what string) error {
			h.whole()
			if purges++; strings.HasPrefix(what, "below") {
				return nil
			}
			m, err := natsconn.Of(h.Client).NextBySubject(t.Context(), ns.StreamHistory(0), ns.History(0, "c", last), 1)
			if err != nil {
				return nil //nolint:nilerr // it is gone
			}
			var r schemas.Record
			if err := schemas.Unmarshal(m.Data, &r); err != nil || r.First != 1 {
				t.Errorf("before %s the last run of the chain begins with event %d (%v)", what, r.First, err)
			}
			return nil
		}
		h.another()
		h.pass()
		if kept := h.kept(); kept != "" || purges == 0 {
			t.Errorf("%q are kept after %d purges, want none", kept, purges)
		}
	})
}
