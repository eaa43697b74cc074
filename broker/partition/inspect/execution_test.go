package inspect_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// What describe and why tell of a run is in its history first.
func TestAnswersWaitForTheHistory(t *testing.T) {
	for verb, check := range map[string]func(any) bool{
		"describe": func(v any) bool {
			d, ok := v.(*schemas.DescribeResponse)
			return ok && d.Execution.Run == "o1" && d.Partition == 4 && d.Owner == "a" &&
				d.Alarm == 9 && d.RequestIDsSince == 3
		},
		"why": func(v any) bool {
			w, ok := v.(*schemas.WhyResponse)
			return ok && w.Run == "o1" && w.Status == schemas.StatusOpen &&
				strings.HasSuffix(w.Because, "; a report is dead")
		},
	} {
		r := quiet("o")
		r.Alarm.Due, r.Pending = 9, make([]actor.Group, 1)
		h := &fakeHost{runs: map[string]*actor.Run{"o": r}}
		q := &schemas.ExecutionRequest{WorkflowID: "o"}
		var got []any
		inspector(t.Context(), h).Execution(verb, q, func(v any) { got = append(got, v) })
		if len(got) > 0 || len(h.pending) != 1 {
			t.Fatalf("%s: answered %+v before it is in the history", verb, got)
		}
		if h.pending[0](); len(got) != 1 || !check(got[0]) {
			t.Errorf("%s: answered %+v", verb, got)
		}
	}
}

// A result waits for the close to be in the history; when the wait is over the run is still open to
// whoever asks. A result that is larger than the asker wants is left out, and its size told.
func TestResultWaitsForTheHistory(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			change func(*actor.Run)
			inline int
			ready  bool
			want   schemas.ResultResponse
		}{
			"open": {func(*actor.Run) {}, 0, false, schemas.ResultResponse{Status: schemas.StatusOpen}},
			"closed, not in the history": {func(r *actor.Run) {
				closed(r.State)
				r.Pending = make([]actor.Group, 1)
			}, 0, false, schemas.ResultResponse{Status: schemas.StatusOpen}},
			"closed, being written": {func(r *actor.Run) {
				closed(r.State)
				r.Inflight = &actor.Commit{}
			}, 0, false, schemas.ResultResponse{Status: schemas.StatusOpen}},
			"closed": {func(r *actor.Run) { closed(r.State) }, 0, true, schemas.ResultResponse{
				Status: schemas.StatusCompleted, Result: schemas.Payload("done"),
			}},
			"closed, of that size": {func(r *actor.Run) { closed(r.State) }, 4, true, schemas.ResultResponse{
				Status: schemas.StatusCompleted, Result: schemas.Payload("done"),
			}},
			"closed, too large": {func(r *actor.Run) { closed(r.State) }, 1, true, schemas.ResultResponse{
				Status: schemas.StatusCompleted, Large: len("done"),
			}},
		} {
			r := quiet("o")
			c.change(r)
			h := &fakeHost{runs: map[string]*actor.Run{"o": r}}
			q := &schemas.ExecutionRequest{WorkflowID: "o", Inline: c.inline}
			var got *schemas.ResultResponse
			reply := func(v any) { got = v.(*schemas.ResultResponse) }
			inspector(t.Context(), h).Execution("result", q, reply)
			if len(h.waits) != 1 || h.waits[0].ready(r) != c.ready || got != nil {
				t.Fatalf("%s: %d wait, answered %+v, want one that is ready: %t",
					name, len(h.waits), got, c.ready)
			}
			h.waits[0].answer(r) // in time, or since the wait is over
			if got == nil || got.Run != "o1" || got.Status != c.want.Status ||
				string(got.Result) != string(c.want.Result) || got.Large != c.want.Large {
				t.Errorf("%s: answered %+v, want %+v", name, got, c.want)
			}
		}
	})
}
