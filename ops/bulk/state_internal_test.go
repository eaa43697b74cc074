package bulk

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// A job asks its query, acts on all that was found, page by page, and tells what became of it.
func TestDecisions(t *testing.T) {
	var s ops.BulkState
	step := func(long bool, events ...schemas.Attributes) schemas.DecisionAttributes {
		t.Helper()
		var n news
		for _, a := range events {
			if err := fold(&s, schemas.Event{Attributes: a}, &n); err != nil {
				t.Fatal(err)
			}
		}
		d, err := decide(&s, n, long)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	body := func(v any) schemas.Payload {
		t.Helper()
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	begins := func(d schemas.DecisionAttributes, typ string, want acts) {
		t.Helper()
		a, ok := d.(*schemas.ScheduleActivity)
		if !ok || a.ActivityType != typ {
			t.Fatalf("got %+v, want %s", d, typ)
		}
		var got acts
		if typ == ops.ActivityBulkAct {
			if err := json.Unmarshal(a.Input, &got); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	begins(step(false, &schemas.WorkflowStarted{Input: body(ops.BulkRequest{Action: ops.BulkPause, Rate: 150})}), ops.ActivityBulkFreeze, acts{})
	if d := step(false, &schemas.Signal{SignalName: "rate", Input: body(80)}); d != nil {
		t.Errorf("got %+v while the query is asked", d)
	}
	begins(step(false, &schemas.ActivitySuccess{Result: body(frozen{Runs: 1100})}), ops.ActivityBulkAct, acts{0, 400, 80})
	begins(step(false, &schemas.ActivitySuccess{Result: body(outcome{Done: 400})}, &schemas.Signal{SignalName: "rate", Input: body(1e9)}),
		ops.ActivityBulkAct, acts{400, 500, ops.MaxBulkRate})
	r := refused(target{ID: "a", Run: "r"}, schemas.Errorf(schemas.CodeConflict, "no"))
	r.add(outcome{Done: 490, Nothing: 9})
	begins(step(false, &schemas.ActivitySuccess{Result: body(r)}), ops.ActivityBulkAct, acts{900, 100, ops.MaxBulkRate}) // to the end of the page
	if d, ok := step(true, &schemas.ActivitySuccess{Result: body(outcome{Done: 100})}).(*schemas.ContinueAsNew); !ok || s.Open != "" {
		t.Errorf("got %+v, want that the job continues as new", d)
	}
	in := map[string]any{"action": "pause", "query": "all", "state": s}
	s = ops.BulkState{}
	begins(step(false, &schemas.WorkflowStarted{Input: body(in)}), ops.ActivityBulkAct, acts{1000, 100, ops.MaxBulkRate})
	kept := s
	if d, ok := step(false, &schemas.ActivitySuccess{Result: body(outcome{Done: 100})}).(*schemas.CompleteWorkflow); !ok {
		t.Errorf("got %+v, want the end", d)
	}
	if s.Done != 1090 || s.Nothing != 9 || s.Refused != 1 || s.Left != 0 || s.Codes[0].Count != 1 || s.Refusals[0].WorkflowID != "a" {
		t.Errorf("got %+v", s)
	}
	s = kept
	if d, ok := step(false, &schemas.WorkflowCancelRequested{}).(*schemas.RequestCancelActivity); !ok || d.ActivityID != "act-1000" {
		t.Errorf("got %+v, want that the activity is to end", d)
	}
	if d, ok := step(false, &schemas.ActivityCanceled{Details: body(progress{Acted: 99, outcome: outcome{Done: 99}})}).(*schemas.CancelWorkflow); !ok || s.Left != 1 {
		t.Errorf("got %+v, want that it is canceled", d)
	}
	s = kept
	if d, ok := step(false, &schemas.ActivityFailed{Reason: "x"}).(*schemas.FailWorkflow); !ok || !strings.HasPrefix(d.Reason, "x") {
		t.Errorf("got %+v, want that it fails", d)
	}
}

// What becomes of a run is told by the answer; without an answer it is not known.
func TestJudge(t *testing.T) {
	is := func(o outcome) outcome { o.Codes, o.Refusals = nil, nil; return o }
	for _, tt := range []struct {
		action ops.BulkAction
		did    bool
		err    error
		want   outcome
		known  bool
	}{
		{ops.BulkPause, true, nil, outcome{Done: 1}, true},
		{ops.BulkReplay, false, nil, outcome{Nothing: 1}, true},
		{ops.BulkCancel, true, schemas.Errorf(schemas.CodeClosed, "x"), outcome{Nothing: 1}, true},
		{ops.BulkDelete, true, schemas.Errorf(schemas.CodeNotFound, "x"), outcome{Nothing: 1}, true},
		{ops.BulkDelete, true, schemas.Errorf(schemas.CodeConflict, "x"), outcome{Refused: 1}, true},
		{ops.BulkReplay, true, schemas.Errorf(schemas.CodeConflict, "x").InField("run"), outcome{Nothing: 1}, true},
		{ops.BulkReplay, true, schemas.Errorf(schemas.CodeConflict, "x"), outcome{Refused: 1}, true},
		{ops.BulkPause, true, schemas.Errorf(schemas.CodeUnavailable, "x"), outcome{}, false},
		{ops.BulkPause, true, schemas.Errorf(schemas.CodeTimeout, "x"), outcome{}, false},
		{ops.BulkPause, true, errors.New("x"), outcome{}, false},
	} {
		got, known := judge(tt.action, target{}, tt.did, tt.err)
		if !reflect.DeepEqual(is(got), tt.want) || known != tt.known {
			t.Errorf("%s, %v: got %+v, %v", tt.action, tt.err, got, known)
		}
	}
	long := refused(target{}, schemas.Errorf(schemas.CodeConflict, "%s", strings.Repeat("ä", 300)))
	if m := long.Refusals[0].Message; len(m) > longestMessage || !strings.HasSuffix(m, "…") {
		t.Errorf("got %q", m)
	}
	for range 20 {
		long.add(refused(target{}, schemas.Errorf(schemas.CodeLimit, "y")))
	}
	if len(long.Refusals) != mostRefusals || len(long.Codes) != 2 || long.Codes[1].Count != 20 || long.Refused != 21 {
		t.Errorf("got %+v", long)
	}
}

// What is deleted comes in the order of the starts, unless the query says another; its times are those of the job.
func TestUnderstood(t *testing.T) {
	at := time.Unix(1e9, 0)
	for _, tt := range []struct {
		action     ops.BulkAction
		text, want string
	}{
		{ops.BulkPause, "type = 'a'", "type = 'a'"},
		{ops.BulkDelete, "type = 'a'", "type = 'a' ORDER BY started"},
		{ops.BulkDelete, "type = 'a' ORDER BY closed", "type = 'a' ORDER BY closed"},
		{ops.BulkDelete, "type = 'a' LIMIT 3", "type = 'a' LIMIT 3"},
	} {
		if got, e := understood(&ops.BulkRequest{Action: tt.action, Query: tt.text}, at); e != nil || got != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.text, got, e, tt.want)
		}
	}
	if got, e := understood(&ops.BulkRequest{Query: "started > now-1h"}, at); e != nil || strings.Contains(got, "now") {
		t.Errorf("got %q, %v, want a time", got, e)
	}
	for _, text := range []string{"typ = 'a'", "type = 'a' GROUP BY status"} {
		if got, e := understood(&ops.BulkRequest{Query: text}, at); e == nil || e.Field != "query" {
			t.Errorf("%s: got %q, %v, want a refusal", text, got, e)
		}
	}
	all := []target{{ID: "a"}, {ID: "b"}, {ID: "a"}, {ID: "c"}}
	if got := apart(all); len(got) != 2 || len(apart(got)) != 2 {
		t.Errorf("got %+v, want the first two", got)
	}
}

// A job with a long history goes on in a new run, which knows what it is for and how far it is.
func TestContinues(t *testing.T) {
	input := schemas.Payload(`{"job":"bulk-x","action":"pause","query":"type = 'a'","rate":200,"reason":"why"}`)
	state := schemas.Payload(`{"v":1,"action":"pause","found":true,"runs":1000,"done":500,"nothing":0,"refused":0,"left":500,"rate":200}`)
	asked := func(input, state schemas.Payload) *decider.Task {
		t.Helper()
		task, err := decider.NewTask(schemas.DecisionTask{
			Type: ops.TypeBulk, WorkflowID: "bulk-x", Run: "r", StartedID: 2, Context: state,
			Events: []schemas.Event{{ID: 1, Attributes: &schemas.WorkflowStarted{Input: input}}, {ID: 2, Attributes: &schemas.DeciderStarted{}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	task := asked(input, state)
	next, err := again(t.Context(), task, state)
	if err != nil {
		t.Fatal(err)
	}
	var in begin
	if err := json.Unmarshal(next, &in); err != nil {
		t.Fatal(err)
	}
	if in.Query != "type = 'a'" || in.Reason != "why" || in.State == nil || in.State.Done != 500 || in.State.Left != 500 {
		t.Errorf("got %s", next)
	}
	// It continues a second time, too.
	task = asked(next, nil)
	d, err := Decide(t.Context(), task)
	if err != nil || len(d) != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	var s ops.BulkState
	if err := json.Unmarshal(task.Context(), &s); err != nil || s.Done != 500 || s.Open != "act-500" {
		t.Errorf("got %s, %v", task.Context(), err)
	}
}
