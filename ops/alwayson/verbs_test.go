package alwayson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/bucketkey"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// Bad input is refused with the field and the way out, and nothing is stored.
func TestBadInput(t *testing.T) {
	start := func(change func(q *schemas.StartRequest)) ops.AlwaysOn {
		a := job("")
		change(&a.Start)
		return a
	}
	live(t, func(h *house) {
		h.o.RequireTypes = true
		h.master(h.o)
		for _, v := range []string{"1", "2"} {
			if _, err := h.Client.RegisterType(h.t.Context(), schemas.WorkflowKind, "job", &drover.TypeOptions{Version: v}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := h.Client.DeprecateType(h.t.Context(), schemas.WorkflowKind, "job", "1"); err != nil {
			t.Fatal(err)
		}
		for field, a := range map[string]ops.AlwaysOn{
			"start.workflowId": start(func(q *schemas.StartRequest) { q.WorkflowID = "" }),
			"start.type":       start(func(q *schemas.StartRequest) { q.Type = "" }),
			"restart":          {Start: schemas.StartRequest{WorkflowID: "w", Type: "job"}, Restart: "sometimes"},
			"start.run":        start(func(q *schemas.StartRequest) { q.Run = "r" }),
			"start.requestId":  start(func(q *schemas.StartRequest) { q.RequestID = "r" }),
			"start.startMode":  start(func(q *schemas.StartRequest) { q.StartMode = schemas.ModeManual }),
			"start.notAfter":   start(func(q *schemas.StartRequest) { q.NotAfter = 1 }),
			"start.signal":     start(func(q *schemas.StartRequest) { q.Signal = &schemas.StartSignal{Name: "s"} }),
			"start.idConflictPolicy": start(func(q *schemas.StartRequest) {
				q.IDConflictPolicy = schemas.ConflictTerminateExisting
			}),
			"start.tagList":                      start(func(q *schemas.StartRequest) { q.TagList = strings.Split("a b c d e f", " ") }),
			"start.continuation.after":           start(func(q *schemas.StartRequest) { q.Continuation = &schemas.ContinuationPolicy{After: 1} }),
			"start.executionStartToCloseTimeout": start(func(q *schemas.StartRequest) { q.ExecutionStartToCloseTimeout = -7 }),
			"start.input": start(func(q *schemas.StartRequest) {
				q.Input = schemas.RefPayload(&schemas.PayloadRef{Object: strings.Repeat("a", 64), Size: 1, Digest: strings.Repeat("a", 64)})
			}),
		} {
			r := h.always("alwaysAdd", &ops.AlwaysAddRequest{AlwaysOn: a})
			if r.Error == nil || r.Error.Code != schemas.CodeInvalid || r.Error.Field != "alwaysOn."+field {
				t.Errorf("%s: got %+v, want it refused with the field", field, r.Error)
			}
		}
		for version, want := range map[string]schemas.Code{"1": schemas.CodeDeprecated, "7": schemas.CodeNotFound} {
			r := h.always("alwaysAdd", &ops.AlwaysAddRequest{AlwaysOn: start(func(q *schemas.StartRequest) { q.TypeVersion = version })})
			if r.Error == nil || r.Error.Code != want || r.Error.Field != "alwaysOn.start.type" || r.Error.Hint == "" {
				t.Errorf("version %s of the type: got %+v, want %s", version, r.Error, want)
			}
		}
		for _, verb := range []string{"alwaysShow", "alwaysStop", "alwaysStart", "alwaysRemove"} {
			for id, want := range map[string]schemas.Code{"": schemas.CodeInvalid, "a\n": schemas.CodeInvalid, "none": schemas.CodeNotFound} {
				r := h.always(verb, &ops.AlwaysRequest{ID: id})
				if r.Error == nil || r.Error.Code != want || r.Error.Field != "id" || r.Error.Hint == "" {
					t.Errorf("%s %q: got %+v, want %s", verb, id, r.Error, want)
				}
			}
			r := h.always(verb, map[string]any{"id": "w", "why": "not"})
			if r.Error == nil || r.Error.Code != schemas.CodeInvalid || r.Error.Field != "why" {
				t.Errorf("%s with a field that it does not have: got %+v", verb, r.Error)
			}
		}
		for _, verb := range []string{"alwaysShow", "alwaysStart"} {
			for field, q := range map[string]*ops.AlwaysRequest{"terminate": {ID: "w", Terminate: true}, "keepRun": {ID: "w", KeepRun: true}} {
				if r := h.always(verb, q); r.Error == nil || r.Error.Code != schemas.CodeInvalid || r.Error.Field != field {
					t.Errorf("%s: got %+v, want %s refused", verb, r.Error, field)
				}
			}
		}
		if r := h.always("alwaysStop", &ops.AlwaysRequest{ID: "w", Terminate: true, KeepRun: true}); r.Error == nil || r.Error.Field != "keepRun" {
			t.Errorf("a stop that ends the run and leaves it alone: got %+v", r.Error)
		}
		if a := h.list(ops.AlwaysListRequest{}); len(a.AlwaysOn) != 0 {
			t.Errorf("got %+v, want nothing stored", a.AlwaysOn)
		}
	})
}

func (h *house) list(q ops.AlwaysListRequest) *ops.AlwaysListResponse {
	h.t.Helper()
	return ask(h, "alwaysList", &q, func(a *ops.AlwaysListResponse) *schemas.Error { return a.Error })
}

// Ids may be any text, and are listed in pages in their order.
func TestListOfAnyIDs(t *testing.T) {
	ids := []string{"a.b", "a*b", "a b", ">", "ä", strings.Repeat("x", 256)}
	slices.Sort(ids)
	live(t, func(h *house) {
		h.master(h.o)
		for _, id := range ids {
			a := job("")
			a.Start.WorkflowID = id
			h.add(a)
		}
		var got []string
		q := ops.AlwaysListRequest{Limit: 2}
		for {
			a := h.list(q)
			for _, r := range a.AlwaysOn {
				got = append(got, r.AlwaysOn.Start.WorkflowID)
			}
			if q.Cursor = a.Cursor; q.Cursor == "" {
				break
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("got %q, want %q", got, ids)
		}
		if a := h.list(ops.AlwaysListRequest{Prefix: "a."}); len(a.AlwaysOn) != 1 {
			t.Errorf("with a prefix: got %+v", a.AlwaysOn)
		}
		for _, id := range ids {
			h.another(id)
		}
	})
}

// A start that is refused is told, counts as a failure, and is tried again.
func TestRefusedStart(t *testing.T) {
	live(t, func(h *house) {
		h.master(h.o)
		a := job("")
		a.Start.TypeVersion = "1"
		if _, err := h.Client.RegisterType(h.t.Context(), schemas.WorkflowKind, "job", &drover.TypeOptions{Version: "1"}); err != nil {
			t.Fatal(err)
		}
		h.add(a)
		h.another("w")
		if _, err := h.Client.DeprecateType(h.t.Context(), schemas.WorkflowKind, "job", "1"); err != nil {
			t.Fatal(err)
		}
		h.tell("complete")
		h.until("the start is refused three times", func() bool { return h.show("w").Failures == 3 })
		if r := h.show("w"); !strings.Contains(r.Refusal, "deprecated") || r.Open {
			t.Errorf("got %+v, want the reason", r)
		}
		if _, err := h.Client.UndeprecateType(h.t.Context(), schemas.WorkflowKind, "job", "1"); err != nil {
			t.Fatal(err)
		}
		h.until("it runs", func() bool { return h.open("w") != "" })
	})
}

// A record that somebody has damaged harms nothing else, is shown with the reason, and can be removed.
func TestDamagedRecord(t *testing.T) {
	live(t, func(h *house) {
		h.o.Logger = logx.Or(nil)
		for i, value := range []string{`{`, `{}`, `{"alwaysOn":{"start":{"workflowId":"other","type":"job"}},"incarnation":"i"}`} {
			if _, err := natsconn.Of(h.Client).KVCreate(h.t.Context(), ns.BucketSchedules(), "always."+bucketkey.Escape(fmt.Sprint("bad ", i)), []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
		h.master(h.o)
		h.add(job(""))
		h.another("w")
		time.Sleep(5 * time.Minute)
		if a := h.list(ops.AlwaysListRequest{Prefix: "bad"}); len(a.AlwaysOn) != 3 || a.AlwaysOn[0].Refusal == "" {
			t.Errorf("got %+v, want three with a reason", a.AlwaysOn)
		}
		for i := range 3 {
			id := fmt.Sprint("bad ", i)
			if r := h.always("alwaysShow", &ops.AlwaysRequest{ID: id}); r.Error == nil || r.Error.Code != schemas.CodeConflict || r.Error.Hint == "" {
				t.Errorf("show: got %+v", r.Error)
			}
			h.do("alwaysRemove", ops.AlwaysRequest{ID: id})
		}
		if a := h.list(ops.AlwaysListRequest{}); len(a.AlwaysOn) != 1 {
			t.Errorf("got %+v, want the good one alone", a.AlwaysOn)
		}
	})
}
