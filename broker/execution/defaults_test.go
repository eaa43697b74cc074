package execution

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// A start takes what it leaves out from its type, and else from the configuration.
func TestStartTakesTheDefaultsOfItsType(t *testing.T) { // S1-1
	typed := schemas.WorkflowTypeDefaults{
		ExecutionStartToCloseTimeout: 11, TaskStartToCloseTimeout: 12, TaskScheduleToStartTimeout: 13, TaskPriority: 14,
		ChildPolicy: schemas.ChildRequestCancel, ActivityDefaults: &schemas.ActivityDefaults{List: "typed"},
	}
	own := schemas.WorkflowTypeDefaults{
		ExecutionStartToCloseTimeout: 21, TaskStartToCloseTimeout: 22, TaskScheduleToStartTimeout: 23, TaskPriority: 24,
		ChildPolicy: schemas.ChildAbandon, ActivityDefaults: &schemas.ActivityDefaults{List: "own"},
	}
	configured := schemas.WorkflowTypeDefaults{ExecutionStartToCloseTimeout: 31, ChildPolicy: schemas.ChildTerminate}
	for _, tt := range []struct {
		name      string
		info      schemas.TypeInfo
		own, want schemas.WorkflowTypeDefaults
	}{
		{name: "of the type", info: schemas.TypeInfo{Workflow: &typed}, want: typed},
		{name: "of the request, before the type", info: schemas.TypeInfo{Workflow: &typed}, own: own, want: own},
		{name: "of the configuration", want: configured},
		{name: "of another version of the type", info: schemas.TypeInfo{Version: "2", Workflow: &typed}, want: configured},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{WorkflowTimeout: 31, ChildPolicy: schemas.ChildTerminate}.Defaults()
			tt.info.Kind, tt.info.Name = schemas.WorkflowKind, "order"
			c.Types = NewTypes(false, []schemas.TypeInfo{tt.info})
			events, _ := New("order-1", "run-1").Step(&c, Start{Request: &schemas.StartRequest{
				WorkflowID: "order-1", Run: "run-1", Type: "order", ExecutionStartToCloseTimeout: tt.own.ExecutionStartToCloseTimeout,
				TaskStartToCloseTimeout: tt.own.TaskStartToCloseTimeout, TaskScheduleToStartTimeout: tt.own.TaskScheduleToStartTimeout,
				TaskPriority: tt.own.TaskPriority, ChildPolicy: tt.own.ChildPolicy, ActivityDefaults: tt.own.ActivityDefaults,
			}}, 1)
			e := events[0].Attributes.(*schemas.WorkflowStarted)
			got := schemas.WorkflowTypeDefaults{
				ExecutionStartToCloseTimeout: e.ExecutionStartToCloseTimeout, TaskStartToCloseTimeout: e.TaskStartToCloseTimeout,
				TaskScheduleToStartTimeout: e.TaskScheduleToStartTimeout, TaskPriority: e.TaskPriority, ChildPolicy: e.ChildPolicy,
				ActivityDefaults: e.ActivityDefaults,
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("started with (-want +got):\n%s", diff)
			}
		})
	}
}

// A decision to schedule takes what it leaves out from its type, then from the run, and else from the configuration.
func TestActivityTakesTheDefaultsOfItsType(t *testing.T) { // S1-9
	typed := schemas.ActivityTypeDefaults{
		List: "typed", TaskPriority: 11, ScheduleToStartTimeout: 12, StartToCloseTimeout: 13, ScheduleToCloseTimeout: 14,
		HeartbeatTimeout: 15, NotIdempotent: true, Retry: &schemas.RetryPolicy{InitialInterval: 16, MaximumAttempts: 3},
	}
	own := schemas.ActivityTypeDefaults{
		List: "own", TaskPriority: 21, ScheduleToStartTimeout: 22, StartToCloseTimeout: 23, ScheduleToCloseTimeout: 24,
		HeartbeatTimeout: 25, NotIdempotent: true, Retry: &schemas.RetryPolicy{InitialInterval: 26, MaximumAttempts: 4},
	}
	ofTheRun := &schemas.ActivityDefaults{
		List: "run", ScheduleToStartTimeout: 32, StartToCloseTimeout: 33, ScheduleToCloseTimeout: 34, HeartbeatTimeout: 35,
	}
	run := schemas.ActivityTypeDefaults{
		List: "run", ScheduleToStartTimeout: 32, StartToCloseTimeout: 33, ScheduleToCloseTimeout: 34, HeartbeatTimeout: 35,
	}
	for _, tt := range []struct {
		name      string
		info      schemas.TypeInfo
		run       *schemas.ActivityDefaults
		own, want schemas.ActivityTypeDefaults
	}{
		{name: "of the type, before the run", info: schemas.TypeInfo{Activity: &typed}, run: ofTheRun, want: typed},
		{name: "of the decision, before the type", info: schemas.TypeInfo{Activity: &typed}, run: ofTheRun, own: own, want: own},
		{name: "of the run", run: ofTheRun, want: run},
		{
			name: "of the configuration", run: &schemas.ActivityDefaults{List: "run"},
			want: schemas.ActivityTypeDefaults{List: "run", StartToCloseTimeout: 43},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := begin(t, func(q *schemas.StartRequest) { q.ActivityDefaults = tt.run })
			w.c.StartToClose = 43
			tt.info.Kind, tt.info.Name = schemas.ActivityKind, "work"
			w.c.Types = NewTypes(false, []schemas.TypeInfo{tt.info})
			w.decide(&schemas.ScheduleActivity{
				ActivityID: "A", ActivityType: "work", List: tt.own.List, TaskPriority: tt.own.TaskPriority,
				ScheduleToStartTimeout: tt.own.ScheduleToStartTimeout, StartToCloseTimeout: tt.own.StartToCloseTimeout,
				ScheduleToCloseTimeout: tt.own.ScheduleToCloseTimeout, HeartbeatTimeout: tt.own.HeartbeatTimeout,
				NotIdempotent: tt.own.NotIdempotent, Retry: tt.own.Retry,
			})
			e := last[*schemas.ActivityScheduled](w)
			got := schemas.ActivityTypeDefaults{
				List: e.List, TaskPriority: e.TaskPriority, ScheduleToStartTimeout: e.ScheduleToStartTimeout,
				StartToCloseTimeout: e.StartToCloseTimeout, ScheduleToCloseTimeout: e.ScheduleToCloseTimeout,
				HeartbeatTimeout: e.HeartbeatTimeout, NotIdempotent: e.NotIdempotent, Retry: e.Retry,
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("scheduled with (-want +got):\n%s", diff)
			}
		})
	}
}

// A termination that names no policy for the children has that of the run.
func TestTerminationHasTheRunsChildPolicy(t *testing.T) {
	for policy, want := range map[schemas.ChildPolicy]schemas.ChildPolicy{"": schemas.ChildRequestCancel, schemas.ChildAbandon: schemas.ChildAbandon} {
		w := begin(t, func(q *schemas.StartRequest) { q.ChildPolicy = schemas.ChildRequestCancel })
		w.do(Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: policy}})
		if got := last[*schemas.WorkflowTerminated](w).ChildPolicy; got != want {
			t.Errorf("terminated with the policy %q, the children are treated by %q, want %q", policy, got, want)
		}
	}
}

// E14. What a continuation leaves out stays as it was: all that the decision could say, and what it cannot. An input of null is left out.
func TestContinuationKeepsWhatItLeavesOut(t *testing.T) {
	w := begin(t, func(q *schemas.StartRequest) {
		q.Input, q.TypeVersion, q.TagList, q.TaskPriority = schemas.Text("in"), "2", []string{"a"}, 7
		q.ExecutionStartToCloseTimeout, q.TaskStartToCloseTimeout, q.TaskScheduleToStartTimeout = schemas.Seconds(900), schemas.Seconds(20), schemas.Seconds(30)
		q.ActivityDefaults, q.ChildPolicy = &schemas.ActivityDefaults{List: "l", HeartbeatTimeout: schemas.Seconds(5)}, schemas.ChildAbandon
		q.Attributes = map[string]string{"k": "v"}
	})
	var a schemas.ContinueAsNew
	if err := json.Unmarshal([]byte(`{"input":null}`), &a); err != nil {
		t.Fatal(err)
	}
	w.decide(&schemas.SetRetention{Retention: "5"}, &a)
	first, q := w.s.Start, w.s.Continuation()
	next := New(w.s.WorkflowID, q.Run)
	next.Step(&w.c, Start{Request: q}, w.now)
	want, got := *first, *next.Start
	if got.ContinuedExecutionRun != first.Run || got.FirstExecutionRun != first.Run || got.Retention == nil {
		t.Errorf("the next run begins with %+v", got)
	}
	want.Run, want.ContinuedExecutionRun, want.FirstExecutionRun, want.Retention = got.Run, got.ContinuedExecutionRun, got.FirstExecutionRun, got.Retention
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was left out is another (-before +after):\n%s", diff)
	}
}

// A continuation keeps the tags of the run unless it has its own; a list of none is its own.
func TestContinuationKeepsTheTags(t *testing.T) {
	for _, tt := range []struct{ own, want []string }{{nil, []string{"a"}}, {[]string{"b"}, []string{"b"}}, {[]string{}, []string{}}} {
		w := begin(t, func(q *schemas.StartRequest) { q.TagList = []string{"a"} })
		w.decide(&schemas.ContinueAsNew{TagList: tt.own})
		if got := w.s.Continuation().TagList; !slices.Equal(got, tt.want) {
			t.Errorf("continued with the tags %q: the next run has %q, want %q", tt.own, got, tt.want)
		}
	}
}
