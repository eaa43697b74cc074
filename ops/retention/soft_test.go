package retention_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// serve lets brokers ask the janitor of this moment, until the returned function is called.
func (h *house) serve() (stop func()) {
	h.t.Helper()
	stop, err := h.j.Serve(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return stop
}

// told are the ids that describe, result and history agree on: those on disk, and those that are soft.
func (h *house) told(ids ...string) (disk, soft string) {
	h.t.Helper()
	var onDisk, softly []string
	for _, id := range ids {
		run := h.Client.Run(id, "")
		d, err := run.Describe(h.t.Context())
		o, err2 := run.Wait(h.t.Context())
		var marked bool
		events := 0
		var last schemas.Event
		var err3 error
		for e, err := range run.History(h.t.Context(), drover.HistoryOptions{OnSoft: func() { marked = true }}) {
			if err3 = err; err == nil {
				events, last = events+1, e
			}
		}
		if errors.Is(err, drover.ErrNotFound) && errors.Is(err2, drover.ErrNotFound) && errors.Is(err3, drover.ErrNotFound) {
			continue
		}
		if err != nil || err2 != nil || err3 != nil {
			h.t.Fatalf("%s: got %v, %v and %v, want one answer", id, err, err2, err3)
		}
		if string(o.Result) != `"done"` || d.Execution.Status != schemas.StatusCompleted || int64(events) != d.Execution.Events || last.Type() != schemas.EventWorkflowSuccess {
			h.t.Errorf("%s: got %+v, %+v, %d events and last %+v", id, o, d.Execution, events, last)
		}
		if d.Soft != o.Soft || d.Soft != marked {
			h.t.Errorf("%s: describe says soft %v, result %v, history %v", id, d.Soft, o.Soft, marked)
		}
		if d.Soft {
			softly = append(softly, id)
		} else {
			onDisk = append(onDisk, id)
		}
	}
	return strings.Join(onDisk, " "), strings.Join(softly, " ")
}

func (h *house) wantTold(n int, disk, soft string) {
	h.t.Helper()
	var ids []string
	for i := range n {
		ids = append(ids, strconv.Itoa(i+1))
	}
	gotDisk, gotSoft := h.told(ids...)
	if gotDisk != disk || gotSoft != soft {
		h.t.Errorf("got %q on disk and %q softly, want %q and %q", gotDisk, gotSoft, disk, soft)
	}
}

// Whoever may look, and change nothing, asks these questions too. Where the answer is to go is no way to signal a workflow by the master's right.
func TestQuestionsAreNoSignals(t *testing.T) {
	live(t, retention.Options{Node: "n1"}, func(h *house) {
		defer h.serve()()
		run := h.start("raw", "waits", says{Stay: true})
		for _, verb := range []string{"retention", "soft"} {
			if err := natsconn.Of(h.Client).PublishReply(ns.API(verb), ns.Signal("waits", "go"), nil, []byte(`{"workflowId":"waits"}`)); err != nil {
				h.t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for e, err := range run.History(h.t.Context(), drover.HistoryOptions{}) {
			if err != nil || e.Type() == schemas.EventSignal {
				h.t.Errorf("got %+v, %v, want no signal", e, err)
			}
		}
	})
}

// A0-15: what is beyond the disk expression and within the soft one is purged, and remembered by the master, and all that is told of it
// says so. Newer runs push it out, a new master has nothing of it, and a start does not mind it.
func TestA015Soft(t *testing.T) {
	live(t, retention.Options{Node: "n1"}, func(h *house) {
		stop := h.serve()
		for i := range 8 {
			h.run("raw", strconv.Itoa(i+1), says{Retention: []string{"3 soft 6"}})
		}
		h.settle()
		h.pass()
		h.wantKept("6 7 8")
		h.wantTold(8, "6 7 8", "3 4 5")
		if a := h.explain("5", ""); !a.Soft || a.Goes || a.Rank != 4 || a.Count != 6 || !strings.Contains(a.Because, "kept softly") || !strings.Contains(a.Because, "on node n1") {
			h.t.Errorf("got %+v", a)
		}
		for e, err := range h.Client.List(h.t.Context(), drover.ListOptions{WorkflowID: "5"}) {
			h.t.Errorf("got %+v, %v, want that lists show what is on disk", e, err)
		}
		if _, err := h.Client.Run("5", "").Replay(h.t.Context(), nil); !errors.Is(err, drover.ErrNotFound) {
			h.t.Errorf("a replay: got %v, want not found", err)
		}
		old, err := h.Client.Run("4", "").Describe(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		h.run("raw", "4", says{Retention: []string{"3 soft 6"}})
		if d, err := h.Client.Run("4", "").Describe(h.t.Context()); err != nil || d.Soft || d.Execution.Run == old.Execution.Run {
			h.t.Errorf("started again: got %+v, %v", d, err)
		}
		if d, err := h.Client.Run("4", old.Execution.Run).Describe(h.t.Context()); err != nil || !d.Soft || d.Execution.Run != old.Execution.Run {
			h.t.Errorf("the earlier run: got %+v, %v", d, err)
		}
		h.settle()
		h.pass()
		h.wantTold(8, "4 7 8", "5 6")
		stop()
		h.wantTold(8, "4 7 8", "")
		h.another()
		defer h.serve()()
		h.pass()
		h.wantTold(8, "4 7 8", "")
	})
}

// A0-15: by age a run is kept on disk, then softly, then not at all.
func TestA015SoftByAge(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		defer h.serve()()
		h.run("raw", "1", says{Retention: []string{"1h soft 4h"}})
		h.settle()
		h.pass()
		h.wantTold(1, "1", "")
		h.Sleep(2 * time.Hour)
		h.settle()
		h.pass()
		h.wantTold(1, "", "1")
		if a := h.explain("1", ""); !a.Soft || a.Until == 0 {
			h.t.Errorf("got %+v", a)
		}
		h.Sleep(2 * time.Hour)
		h.pass()
		h.wantTold(1, "", "")
	})
}

// What is kept softly is bound: the run that ended first goes first, and one that takes too much of the room is not kept.
func TestSoftBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes int
		soft  string
	}{"none": {-1, ""}, "too little for one": {1 << 10, ""}, "for some": {8_000, "some"}} {
		t.Run(name, func(t *testing.T) {
			live(t, retention.Options{SoftBytes: tt.bytes}, func(h *house) {
				defer h.serve()()
				for i := range 9 {
					h.run("raw", strconv.Itoa(i+1), says{Retention: []string{"0 soft forever"}})
				}
				h.settle()
				h.pass()
				_, soft := h.told("1", "2", "3", "4", "5", "6", "7", "8", "9")
				if tt.soft == "" && soft != "" {
					h.t.Errorf("got %q, want none", soft)
				}
				if tt.soft != "" && (soft == "" || soft == "1 2 3 4 5 6 7 8 9" || !strings.HasSuffix("1 2 3 4 5 6 7 8 9", soft)) {
					h.t.Errorf("got %q, want the latest of them", soft)
				}
			})
		})
	}
}

// ask asks the API, in JSON.
func ask[A any](h *house, verb string, q any) *A {
	h.t.Helper()
	body, err := schemas.MarshalJSON(q)
	if err != nil {
		h.t.Fatal(err)
	}
	m, err := natsconn.Of(h.Client).Request(h.t.Context(), ns.API(verb), nil, body)
	if err != nil {
		h.t.Fatal(err)
	}
	a := new(A)
	if err := schemas.Unmarshal(m.Data, a); err != nil {
		h.t.Fatal(err)
	}
	return a
}

// The history of a run that is kept softly comes in pages of whatever size, each event once and in order.
func TestSoftHistoryInPages(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		h.start("raw", "1", says{Retention: []string{"0 soft 5", "context", "context"}, Stay: true})
		for _, signal := range []string{"a", "b", "c", "d", "e", "go"} {
			if err := h.Client.Run("1", "").Signal(h.t.Context(), signal, nil); err != nil {
				h.t.Fatal(err)
			}
			time.Sleep(time.Second) // a record or two for each
		}
		h.Wait(h.Client.Run("1", ""))
		var want []schemas.Event
		for e, err := range h.Client.Run("1", "").History(h.t.Context(), drover.HistoryOptions{}) {
			if err != nil {
				h.t.Fatal(err)
			}
			want = append(want, e)
		}
		h.settle()
		h.pass()
		defer h.serve()()
		for _, limit := range []int{1, 2, 3, 7, len(want) - 1, len(want), len(want) + 1} {
			var got []schemas.Event
			pages, run := 0, ""
			for more := true; more; pages++ {
				after := int64(len(got))
				a := ask[schemas.HistoryResponse](h, "history", &schemas.HistoryRequest{V: schemas.Version, WorkflowID: "1", Run: run, After: after, Limit: limit})
				if a.Error != nil || !a.Soft || len(a.Events) > limit || a.Closed == a.More {
					h.t.Fatalf("%d a page, after %d: got %+v", limit, after, a)
				}
				got, more, run = append(got, a.Events...), a.More, a.Run
			}
			if diff := cmp.Diff(want, got); diff != "" {
				h.t.Errorf("%d a page (-want +got):\n%s", limit, diff)
			}
			if least := (len(want) + limit - 1) / limit; pages != least {
				h.t.Errorf("%d a page: got %d pages, want %d", limit, pages, least)
			}
		}
		if a := ask[schemas.HistoryResponse](h, "history", &schemas.HistoryRequest{V: schemas.Version, WorkflowID: "1", After: int64(len(want))}); a.Error != nil || len(a.Events) != 0 || !a.Closed {
			h.t.Errorf("after the end: got %+v", a)
		}
		back := ask[schemas.HistoryResponse](h, "history", &schemas.HistoryRequest{V: schemas.Version, WorkflowID: "1", NewestFirst: true, Limit: 3})
		slices.Reverse(back.Events)
		if diff := cmp.Diff(want[len(want)-3:], back.Events); diff != "" || !back.Soft || !back.More || !back.Closed || back.Next != want[len(want)-3].ID {
			h.t.Errorf("from the end: got %+v (-want +got):\n%s", back, diff)
		}
		signals := ask[schemas.HistoryResponse](h, "history", &schemas.HistoryRequest{V: schemas.Version, WorkflowID: "1", Types: []schemas.EventType{schemas.EventSignal}, Before: want[len(want)-1].ID})
		if len(signals.Events) != 6 || signals.More || signals.Closed {
			h.t.Errorf("signals: got %+v, want six", signals)
		}
		spans := ask[ops.SpansResponse](h, "spans", &ops.SpansRequest{V: schemas.Version, WorkflowID: "1"})
		if n := len(want); spans.Error != nil || spans.Run != back.Run || spans.Next != want[n-1].ID || !spans.Closed || spans.Base != want[0].Time {
			h.t.Errorf("spans: got %+v, want those of %d events", spans, n)
		}
	})
}

// wholePayloads compares payloads at once. Byte by byte, as cmp does it, a megabyte takes seconds.
var wholePayloads = cmp.Comparer(func(a, b schemas.Payload) bool { return bytes.Equal(a, b) })

// A run that fits into no message is told of whole, too. With the end of Run nothing is remembered.
func TestSoftRunOfManyMessages(t *testing.T) {
	live(t, retention.Options{Delay: -1}, func(h *house) {
		h.start("raw", "1", says{Retention: []string{"0 soft 5"}, Stay: true})
		for _, signal := range []string{"a", "b", "c", "d", "e", "f", "g", "go"} {
			if err := h.Client.Run("1", "").Signal(h.t.Context(), signal, strings.Repeat(signal, 200_000/len(signal))); err != nil {
				h.t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		h.Wait(h.Client.Run("1", ""))
		want := h.History("1")
		h.settle()
		ctx, cancel := context.WithCancel(h.t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := h.j.Run(ctx); err != nil {
				h.t.Error(err)
			}
		})
		time.Sleep(time.Minute)
		h.wantTold(1, "", "1")
		if diff := cmp.Diff(want, h.History("1"), wholePayloads); diff != "" {
			h.t.Errorf("(-want +got):\n%s", diff)
		}
		if got := h.j.Remembered(); got < 8*200_000 {
			h.t.Errorf("got %d bytes remembered, want all of the payloads", got)
		}
		cancel()
		running.Wait()
		if got := h.j.Remembered(); got != 0 {
			h.t.Errorf("got %d bytes remembered after the end", got)
		}
		h.wantTold(1, "", "")
	})
}

// Lists show what is on disk, page by page, with holes where runs were purged: each run once, and none that is soft.
func TestListsBesideSoftRuns(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		defer h.serve()()
		for i := range 12 {
			kept := "0 soft 20"
			if i%3 == 0 {
				kept = "forever"
			}
			h.run("raw", strconv.Itoa(i+1), says{Retention: []string{kept}, Hash: kept})
		}
		h.settle()
		h.pass()
		h.wantTold(12, "1 4 7 10", "2 3 5 6 8 9 11 12")
		for _, limit := range []int{1, 2, 3, 100} {
			var got []string
			for cursor, more := "", true; more; {
				a := ask[schemas.ListResponse](h, "list", &schemas.ListRequest{V: schemas.Version, Type: "raw", Limit: limit, Cursor: cursor})
				if a.Error != nil || len(a.Executions) > limit {
					h.t.Fatalf("%d a page: got %+v", limit, a)
				}
				for _, x := range a.Executions {
					got = append(got, x.WorkflowID)
				}
				cursor, more = a.Cursor, a.Cursor != ""
			}
			if strings.Join(got, " ") != "1 4 7 10" {
				h.t.Errorf("%d a page: got %q, want what is on disk", limit, got)
			}
		}
	})
}

// A run that was replayed and is kept softly names the run that repeats it, and is listed among the attempts with it.
func TestSoftRunThatWasReplayed(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		defer h.serve()()
		first := h.run("raw", "1", says{Retention: []string{"1 soft 5"}})
		r, err := h.Client.Run("1", "").Replay(h.t.Context(), &drover.ReplayOptions{From: "start", Reason: "again"})
		if err != nil {
			h.t.Fatal(err)
		}
		h.Wait(r.Run)
		h.settle()
		h.pass()
		h.wantKept("1")
		d, err := h.Client.Run("1", first).Describe(h.t.Context())
		if err != nil || !d.Soft || len(d.Attempts) != 2 || d.Attempts[0].Run != first || d.Attempts[1].Run != r.Run.RunID || d.Attempts[1].Replays.Run != first {
			h.t.Errorf("describe: got %+v, %v", d, err)
		}
		a := ask[schemas.HistoryResponse](h, "history", &schemas.HistoryRequest{V: schemas.Version, WorkflowID: "1", Run: first})
		if !a.Soft || !a.Closed || a.ReplayedBy != r.Run.RunID {
			h.t.Errorf("history: got soft %v, closed %v, replayed by %q, want %q", a.Soft, a.Closed, a.ReplayedBy, r.Run.RunID)
		}
		why, err := h.Client.Run("1", first).Why(h.t.Context())
		if err != nil || !strings.Contains(why, "replayed from start as run "+r.Run.RunID) || !strings.Contains(why, "the master remembers it") {
			h.t.Errorf("why: got %q, %v", why, err)
		}
		if d, err := h.Client.Run("1", "").Describe(h.t.Context()); err != nil || d.Soft || len(d.Attempts) != 1 || d.Attempts[0].Replays.Run != first {
			h.t.Errorf("the latest: got %+v, %v", d, err)
		}
	})
}

// An audit finds nothing where histories are purged and kept softly.
func TestAuditBesideSoftRuns(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		defer h.serve()()
		for i := range 6 {
			id := strconv.Itoa(i + 1)
			h.run("raw", id, says{Retention: []string{"1 soft 3"}, Child: &says{}, ChildID: id + "-child"})
			h.run("flow", "f"+id, says{Retention: []string{"0 soft 2"}, Again: 2})
		}
		h.settle()
		h.pass()
		if disk, soft := h.told("1", "2", "3", "4", "5", "6"); disk != "6" || soft != "4 5" {
			h.t.Errorf("got %q on disk and %q softly", disk, soft)
		}
		held, err := claims.Open(natsconn.Of(h.Client), ns.BucketClaims(), claims.Options{Node: "audit"})
		if err != nil {
			h.t.Fatal(err)
		}
		a, err := audit.New(audit.Options{Conn: natsconn.Of(h.Client), Namespace: ns, Partitions: 1, Claims: held})
		if err != nil {
			h.t.Fatal(err)
		}
		r, err := a.Pass(h.t.Context(), true)
		if err != nil || len(r.Findings) != 0 {
			h.t.Errorf("got %+v, %v, want no findings", r, err)
		}
	})
}

// However many ask at once, each is answered.
func TestManyQuestionsAtOnce(t *testing.T) {
	live(t, retention.Options{}, func(h *house) {
		stop := h.serve()
		h.run("raw", "1", says{Retention: []string{"0 soft 5"}})
		h.settle()
		h.pass()
		var asking sync.WaitGroup
		for range 200 {
			asking.Go(func() {
				if d, err := h.Client.Run("1", "").Describe(h.t.Context()); err != nil || !d.Soft {
					h.t.Errorf("got %+v, %v, want the run that is kept softly", d, err)
				}
			})
		}
		asking.Wait()
		stop()
		h.wantTold(1, "", "")
	})
}
