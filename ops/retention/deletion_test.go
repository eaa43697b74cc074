package retention_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// delete asks the janitor for a deletion.
func (h *house) delete(id, run string) (*ops.DeleteResponse, error) {
	h.t.Helper()
	return h.j.Delete(h.t.Context(), &ops.DeleteRequest{WorkflowID: id, Run: run, Reason: "wrong", Identity: "ann"})
}

// goes asks for a deletion, and says how many runs went.
func (h *house) goes(id, run string) int {
	h.t.Helper()
	a, err := h.delete(id, run)
	if err != nil {
		h.t.Fatalf("delete %s: %v", id, err)
	}
	return a.Runs
}

// stays asks for a deletion that is refused, with words of its reason.
func (h *house) stays(id, run string, code schemas.Code, words string) {
	h.t.Helper()
	_, err := h.delete(id, run)
	e, ok := errors.AsType[*schemas.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Error(), words) {
		h.t.Errorf("delete %s: got %v, want %s with %q", id, err, code, words)
	}
}

// A closed run is purged on demand, whatever its retention says, but no earlier than a pass may purge it. It is noted, and counts no
// more among those that it was judged with.
func TestDelete(t *testing.T) {
	var noted []ops.Operation
	note := func(_ context.Context, o ops.Operation) { noted = append(noted, o) }
	live(t, retention.Options{Note: note}, func(h *house) {
		open := h.start("raw", "open", says{Stay: true})
		for _, id := range []string{"a", "b", "c"} {
			h.run("raw", id, says{Retention: []string{"2"}})
		}
		kept := h.run("raw", "kept", says{Retention: []string{"forever"}, Hash: "kept"})
		h.stays("open", "", schemas.CodeConflict, "is open")
		h.stays("never", "", schemas.CodeNotFound, "has no such history")
		h.stays("kept", "", schemas.CodeConflict, "stays for 2m")
		h.settle()
		if n := h.goes("kept", kept) + h.goes("c", ""); n != 2 {
			h.t.Errorf("got %d runs, want both alone", n)
		}
		if len(noted) != 2 || noted[0].Kind != ops.OperationRunDeleted || noted[0].Run != kept || noted[0].Identity != "ann" || noted[0].Reason != "wrong" {
			h.t.Errorf("noted %+v", noted)
		}
		h.stays("kept", kept, schemas.CodeNotFound, "is purged")
		h.pass()
		h.wantKept("a b open") // with c there, a would have gone
		if a := h.explain("a", ""); a.Rank != 2 || a.Count != 2 {
			h.t.Errorf("got %+v, want the second of two", a)
		}
		if _, err := h.Client.Run("c", "").Describe(h.t.Context()); !errors.Is(err, drover.ErrNotFound) {
			h.t.Errorf("got %v, want that nobody knows it", err)
		}
		again := h.run("raw", "c", says{})
		if again == "" || h.runs("c") != 1 {
			h.t.Errorf("got %d runs, want that the id is free", h.runs("c"))
		}
		if err := open.Signal(h.t.Context(), "go", nil); err != nil {
			h.t.Fatal(err)
		}
		h.Wait(open)
	})
}

// The last run of a chain takes along those before it. One in its middle waits for them.
func TestDeleteChain(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		h.run("raw", "c", says{Again: 3})
		h.run("raw", "other", says{})
		h.settle()
		var all []string // in the order of their ends
		o := natsconn.ReadOptions{FilterSubjects: []string{ns.HistoryOfWorkflow(0, "c")}, HeadersOnly: true, LastPerSubject: true}
		if err := natsconn.Of(h.Client).Scan(h.t.Context(), ns.StreamHistory(0), o, func(s natsconn.Stored) error {
			_, _, run, err := subject.ParseHistory(s.Subject)
			all = append(all, run)
			return err
		}); err != nil {
			h.t.Fatal(err)
		}
		h.stays("c", all[1], schemas.CodeConflict, "of its chain before it are still there")
		if n := h.goes("c", all[0]); n != 1 {
			h.t.Errorf("got %d runs, want the first alone", n)
		}
		if n := h.goes("c", ""); n != 3 {
			h.t.Errorf("got %d runs, want the rest of the chain", n)
		}
		h.wantKept("other")
	})
}

// A child goes when all above it have closed; a run of a flow takes its parts along.
func TestDeleteChildren(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		child := &says{}
		parent := h.start("raw", "p", says{Child: child, ChildID: "p/1", Stay: true})
		h.Await("p", schemas.EventChildSuccess)
		time.Sleep(time.Second) // the decider is asked about the child before
		h.settle()
		h.stays("p/1", "", schemas.CodeConflict, "above it, is open")
		if err := parent.Signal(h.t.Context(), "go", nil); err != nil {
			h.t.Fatal(err)
		}
		h.Wait(parent)
		h.settle()
		if n := h.goes("p/1", ""); n != 1 {
			h.t.Errorf("got %d, want the child alone", n)
		}
		if n := h.goes("p", ""); n != 1 {
			h.t.Errorf("got %d, want the parent", n)
		}
		h.wantKept("")
	})
}

// What is to be kept softly is gone when it is deleted, whether it is on disk still or not.
func TestDeleteSoft(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		for _, id := range []string{"a", "b", "c"} {
			h.run("raw", id, says{Retention: []string{"1 soft 9"}})
		}
		h.settle()
		if n := h.goes("b", ""); n != 1 {
			h.t.Errorf("got %d runs", n)
		}
		h.pass()
		h.wantKept("c")
		if !h.explain("a", "").Soft {
			h.t.Errorf("a is not kept softly")
		}
		a, err := h.delete("a", "")
		if err != nil || !a.Soft || a.Runs != 1 {
			h.t.Errorf("got %+v, %v, want that it was in memory", a, err)
		}
		for _, id := range []string{"a", "b"} {
			h.stays(id, "", schemas.CodeNotFound, "is purged")
		}
		if h.j.Remembered() != 0 {
			h.t.Errorf("%d bytes are remembered, want none", h.j.Remembered())
		}
	})
}

// While a start may be repeated whose run would begin anew nothing is deleted, and a deletion that was cut off is repeated.
func TestDeleteHeldAndCut(t *testing.T) {
	holds, cut := true, false
	o := retention.Options{Holds: func() bool { return holds }, Before: func(string, string) error {
		if cut {
			return errCut
		}
		return nil
	}}
	live(t, o, func(h *house) {
		h.run("raw", "a", says{Again: 2})
		h.settle()
		h.stays("a", "", schemas.CodeUnavailable, "may be repeated")
		holds, cut = false, true
		if _, err := h.delete("a", ""); !errors.Is(err, errCut) {
			h.t.Fatalf("got %v, want %v", err, errCut)
		}
		cut = false
		h.another() // of another master
		if n := h.goes("a", ""); n != 3 {
			h.t.Errorf("got %d runs, want all", n)
		}
		h.wantKept("")
	})
}

// A running janitor serves the verb between its passes and within them.
func TestDeleteServed(t *testing.T) {
	live(t, retention.Options{Delay: time.Hour}, func(h *house) {
		h.run("raw", "a", says{})
		h.run("raw", "b", says{})
		h.settle()
		ctx, cancel := context.WithCancel(h.t.Context())
		done := make(chan error, 1)
		go func() { done <- h.j.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				h.t.Error(err)
			}
		}()
		a, err := h.Client.Run("a", "").Delete(h.t.Context(), "wrong")
		if err != nil || a.Runs != 1 || a.WorkflowID != "a" {
			h.t.Errorf("got %+v, %v", a, err)
		}
		h.wantKept("b")
		if _, err := h.Client.Run("a", "").Delete(h.t.Context(), ""); !errors.Is(err, drover.ErrNotFound) {
			h.t.Errorf("got %v, want not found", err)
		}
		if err := natsconn.Of(h.Client).PublishReply(ns.API("delete"), ns.Signal("b", "go"), nil, []byte(`{"workflowId":"x"}`)); err != nil {
			h.t.Fatal(err)
		}
		time.Sleep(time.Second)
		h.wantKept("b")
	})
}
