package retention_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
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
	}{"none": {-1, ""}, "too little for one": {1 << 10, ""}, "for some": {3_600, "some"}} {
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
