package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/schemas"
	"github.com/google/go-cmp/cmp"
)

// one is a store with a single flow.
type one struct{ d *model.Definition }

func (s one) Definition(_ context.Context, _, _, version string) (*model.Definition, string, error) {
	if version != "" && version != s.d.Version() {
		return nil, "", fmt.Errorf("%w: version %s", ErrNoDefinition, version)
	}
	return s.d, s.d.Version(), nil
}

// tape records a run: what its decider decides becomes events, as the broker would write them.
type tape struct {
	t        *testing.T
	d        *Decider
	events   []schemas.Event
	previous int64
	context  schemas.Payload
	now      time.Time
	full     bool // it is asked to continue as new
	mode     schemas.StartMode
}

// record begins a run of a flow.
func record(t *testing.T, text string, input string) *tape {
	t.Helper()
	d, err := Parse("flow", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	tp := &tape{t: t, d: New(one{d}, &Options{List: "main", Random: func() float64 { return 0.5 }}), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	begin := &schemas.WorkflowStarted{WorkflowID: "w", Run: "r", WorkflowType: "flow", Input: schemas.Payload(input)}
	if strings.Contains(input, savedState) { // as a run of a flow wraps it
		begin.ContinuedExecutionRun = "before"
	}
	tp.add(begin)
	return tp
}

func (tp *tape) add(a schemas.Attributes) int64 {
	id := int64(len(tp.events)) + 1
	tp.events = append(tp.events, schemas.Event{ID: id, Time: schemas.At(tp.now), Attributes: a})
	return id
}

// decide shows the decider what is new and returns what it decides, one a line.
func (tp *tape) decide(happened ...schemas.Attributes) []string {
	tp.t.Helper()
	for _, a := range happened {
		tp.add(a)
	}
	tp.add(&schemas.DeciderScheduled{})
	started := tp.add(&schemas.DeciderStarted{})
	make := func() ([]schemas.Decision, schemas.Payload) {
		task, err := decider.NewTask(schemas.DecisionTask{
			Namespace: "default", WorkflowID: "w", Run: "r", Type: "flow", Attempt: 1, Context: tp.context,
			PreviousStartedID: tp.previous, StartedID: started, Events: tp.events[tp.previous:], SuggestContinueAsNew: tp.full, StartMode: tp.mode,
		})
		if err != nil {
			tp.t.Fatal(err)
		}
		decisions, err := tp.d.Decide(tp.t.Context(), task)
		if err != nil {
			tp.t.Fatal(err)
		}
		return decisions, task.Context()
	}
	decisions, after := make()
	again, other := make()
	if diff := cmp.Diff(lines(tp.t, decisions), lines(tp.t, again)); diff != "" || string(after) != string(other) {
		tp.t.Errorf("a task that is answered twice gets two answers:\n%s\n%s\n%s", diff, after, other)
	}
	tp.standAlone(decisions)
	tp.previous, tp.context = started, after
	tp.add(&schemas.DeciderCompleted{ExecutionContext: after})
	for _, d := range decisions {
		tp.write(d)
	}
	return lines(tp.t, decisions)
}

// standAlone refuses what the broker refuses: to ask for something beside the end of the run.
func (tp *tape) standAlone(decisions []schemas.Decision) {
	tp.t.Helper()
	n := len(decisions)
	if n == 0 || !decisions[n-1].Closes() {
		return
	}
	for _, d := range decisions[:n-1] {
		switch d.Type() {
		case schemas.DecideScheduleActivity, schemas.DecideScheduleTimer, schemas.DecideAcquireLock,
			schemas.DecideGetState, schemas.DecideSetState, schemas.DecideClearState:
			tp.t.Errorf("%s cannot stand beside %s, which ends the run", d.Type(), decisions[n-1].Type())
		}
	}
}

// write is the event of a decision.
func (tp *tape) write(d schemas.Decision) {
	switch a := d.Attributes.(type) {
	case *schemas.ScheduleActivity:
		tp.add(&schemas.ActivityScheduled{ActivityID: a.ActivityID, ActivityType: a.ActivityType, List: a.List, Input: a.Input})
	case *schemas.ScheduleTimer:
		tp.add(&schemas.TimerScheduled{TimerID: a.TimerID, StartToFireTimeout: a.StartToFireTimeout})
	case *schemas.StartChild:
		tp.add(&schemas.ChildScheduled{WorkflowID: a.WorkflowID, WorkflowType: a.WorkflowType, Input: a.Input, Control: a.Control})
	case *schemas.SignalExternal:
		tp.add(&schemas.SignalExternalScheduled{WorkflowID: a.WorkflowID, SignalName: a.SignalName, Control: a.Control})
	case *schemas.AcquireLock:
		tp.add(&schemas.LockRequested{Lock: a.Lock, Scope: a.Scope, Limit: a.Limit})
	case *schemas.GetState:
		tp.add(&schemas.StateRequested{Decision: d.Type(), Key: a.Key, Scope: a.Scope})
	case *schemas.SetState:
		tp.add(&schemas.StateRequested{Decision: d.Type(), Key: a.Key, Scope: a.Scope, Value: a.Value, Require: a.Require})
	case *schemas.ClearState:
		tp.add(&schemas.StateRequested{Decision: d.Type(), Key: a.Key, Scope: a.Scope})
	}
}

// asked is the event of the latest request of a type.
func (tp *tape) asked(typ schemas.EventType) int64 {
	tp.t.Helper()
	for i := len(tp.events) - 1; i >= 0; i-- {
		if tp.events[i].Type() == typ {
			return tp.events[i].ID
		}
	}
	tp.t.Fatalf("there is no %s", typ)
	return 0
}

func lines(t *testing.T, decisions []schemas.Decision) []string {
	t.Helper()
	var all []string
	for _, d := range decisions {
		data, err := json.Marshal(d.Attributes)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(d.Type())+" "+string(data))
	}
	return all
}

func (tp *tape) want(got []string, want ...string) {
	tp.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tp.t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

func TestLocksAndStateKeys(t *testing.T) {
	tp := record(t, `
lock: {name: l, scope: s, limit: 2}
retention: 5 hash g
steps:
- let x = ${state.count} + 1
- {step: "set-state count = ${x}", require: {equals: 41}, replayable: from here only, on-error: log refused}
- clear-state old on elsewhere
- workflow replayable reset
`, "")
	tp.want(tp.decide(), `SetRetention {"retention":"5","hash":"g"}`, `AcquireLock {"lock":"l","scope":"s","limit":2}`)
	tp.want(tp.decide(&schemas.LockAcquired{Lock: "l", Scope: "s", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)}), `GetState {"key":"count"}`)
	tp.want(tp.decide(&schemas.StateRead{Key: "count", Value: schemas.Payload("41"), ScheduledEventID: tp.asked(schemas.EventStateRequested)}),
		`SetReplayPoint {"name":"1","only":true}`, `SetState {"key":"count","value":42,"require":{"equals":41}}`)
	tp.want(tp.decide(&schemas.StateRefused{Key: "count", ScheduledEventID: tp.asked(schemas.EventStateRequested)}),
		`RecordMarker {"markerName":"log","details":{"level":"info","text":"refused"}}`, `ClearState {"key":"old","scope":"elsewhere"}`)
	tp.want(tp.decide(&schemas.StateCleared{Key: "old", ScheduledEventID: tp.asked(schemas.EventStateRequested)}, &schemas.LockBroken{Lock: "l"}),
		`ResetReplayPoints {}`, `CompleteWorkflow {}`)
	tp.want(tp.decide(&schemas.WorkflowCloseFailed{Decision: schemas.DecideCompleteWorkflow, Cause: schemas.CauseUnhandledDecision}), `CompleteWorkflow {}`)
}

// A run may hold other locks than that of its flow, by their state keys. That one of them is taken away is no word about the others, which
// it keeps until the work that it has begun has ended.
func TestOtherLockIsTakenAway(t *testing.T) {
	without := `RecordMarker {"markerName":"log","details":{"level":"warn","text":"the lock l was taken away; the run goes on without it"}}`
	for lock, want := range map[string][]string{
		"other":   {`RequestCancelActivity {"activityId":"1#1"}`},
		"l":       {without, `RequestCancelActivity {"activityId":"1#1"}`},
		"l other": {without, `RequestCancelActivity {"activityId":"1#1"}`, `CancelWorkflow {"details":{"message":"the run was asked to end","type":"canceled"}}`},
	} {
		t.Run(lock, func(t *testing.T) {
			tp := record(t, "lock: l\nsteps: [{step: 'set-state lock-other = w', require: {when: absent}}, activity work]", "")
			tp.want(tp.decide(), `AcquireLock {"lock":"l"}`)
			tp.decide(&schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)})
			tp.decide(&schemas.LockAcquired{Lock: "other", Fence: 2, ScheduledEventID: tp.asked(schemas.EventStateRequested)},
				&schemas.StateSet{Key: "lock-other", ScheduledEventID: tp.asked(schemas.EventStateRequested)})
			var happened []schemas.Attributes
			for one := range strings.FieldsSeq(lock) {
				happened = append(happened, &schemas.LockBroken{Lock: one, Fence: 1})
			}
			tp.want(tp.decide(append(happened, &schemas.WorkflowCancelRequested{})...), want...)
		})
	}
}

// The run that continues another has its locks, also those that it has taken by their state keys.
func TestLockByItsKeyGoesOn(t *testing.T) {
	tp := record(t, "steps: [set-state lock-a on s = w, wait for signal go, activity work]", "")
	tp.decide()
	tp.decide(&schemas.StateSet{Key: "lock-a", Scope: "s", ScheduledEventID: tp.asked(schemas.EventStateRequested)})
	tp.full = true
	got := tp.decide(&schemas.Signal{SignalName: "go"})
	if len(got) != 1 || !strings.Contains(got[0], `"held":["`+schemas.LockKey("s", "a")+`"]`) {
		t.Fatalf("got %s, want the next run to know of the lock", got)
	}
	next := record(t, "steps: [set-state lock-a on s = w, wait for signal go, activity work]", tp.next(got))
	next.decide()
	next.want(next.decide(&schemas.WorkflowCancelRequested{}), `RequestCancelActivity {"activityId":"2#1"}`)
}

// A lock is held until the work that was begun under it has ended, also if the run has given it up and is about to end (A0-5).
func TestLockOutlivesWorkThatIsGivenUp(t *testing.T) {
	canceled := `CancelWorkflow {"details":{"message":"the run was asked to end","type":"canceled"}}`
	slow := "{type: subworkflow, timeout: 1m, steps: [activity slow]%s}"
	within := "{type: subworkflow, timeout: 1m, steps: [{type: workflow, steps: [activity slow]}], on-error: [return saved]}"
	passed := &schemas.TimerExpired{TimerID: "0#1!timeout"}
	for name, tc := range map[string]struct {
		flow   string
		part   string // in place of the whole flow: what the run around it says
		given  schemas.Attributes
		before []string // the work has ended
		later  []string
	}{
		"by a failure": {
			flow: "lock: l\nsteps: [" + fmt.Sprintf(slow, "") + "]", given: passed, before: []string{`RequestCancelActivity {"activityId":"0.steps.0#1"}`},
			later: []string{`FailWorkflow {"reason":"timeout","details":{"message":"the timeout of step 0 has passed","step":"0","type":"timeout"}}`},
		},
		"by success": {
			flow: "lock: l\nsteps: [" + fmt.Sprintf(slow, ", on-error: [return saved]") + "]", given: passed,
			before: []string{`RequestCancelActivity {"activityId":"0.steps.0#1"}`}, later: []string{`CompleteWorkflow {"result":"saved"}`},
		},
		"with a child": {
			flow: "lock: l\nsteps: [" + within + "]", given: passed, before: []string{`CancelExternal {"workflowId":"r:0.steps.0#1/0"}`},
			later: []string{`CompleteWorkflow {"result":"saved"}`},
		},
		"by cancel, in a handler": {
			flow:  "lock: l\nsteps: [" + fmt.Sprintf(slow, ", on-error: [sleep 1h]") + "]",
			given: passed, before: []string{`RequestCancelActivity {"activityId":"0.steps.0#1"}`, `ScheduleTimer {"timerId":"0.on-error.0#1","startToFireTimeout":3600}`},
		},
		"in a part of a run with a lock": {
			flow: "steps: [{type: workflow, steps: [activity slow]}]", part: `"part":"0","locked":true`, given: &schemas.WorkflowCancelRequested{},
			before: []string{`RequestCancelActivity {"activityId":"0.steps.0#1"}`}, later: []string{canceled},
		},
		"without a lock": {
			flow: "steps: [{type: workflow, steps: [activity slow]}]", part: `"part":"0"`, given: &schemas.WorkflowCancelRequested{},
			before: []string{`RequestCancelActivity {"activityId":"0.steps.0#1"}`, canceled},
		},
		"without work": {
			flow: "lock: l\nsteps: [{type: subworkflow, timeout: 1m, steps: [set-state k = 1]}]", given: passed,
			before: []string{`FailWorkflow {"reason":"timeout","details":{"message":"the timeout of step 0 has passed","step":"0","type":"timeout"}}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := ""
			if tc.part != "" {
				input = `{"$flow":{` + tc.part + `}}`
			}
			tp := record(t, tc.flow, input)
			tp.decide()
			if tc.part == "" {
				tp.decide(&schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)})
			}
			tp.want(tp.decide(tc.given), tc.before...)
			if name == "by cancel, in a handler" {
				tp.want(tp.decide(&schemas.WorkflowCancelRequested{}), `CancelTimer {"timerId":"0.on-error.0#1"}`)
				tc.later = []string{canceled}
			}
			if tc.later == nil {
				return
			}
			tp.want(tp.decide(&schemas.Signal{SignalName: "hurry"}))
			if strings.Contains(tc.before[0], "CancelExternal") {
				tp.want(tp.decide(&schemas.ChildCanceled{ScheduledEventID: tp.asked(schemas.EventChildScheduled)}), tc.later...)
			} else {
				tp.want(tp.decide(&schemas.ActivityCanceled{ScheduledEventID: tp.asked(schemas.EventActivityScheduled)}), tc.later...)
			}
		})
	}
	tp := record(t, "lock: l\nsteps: [{type: workflow, steps: [no-op]}]", "")
	tp.decide()
	got := tp.decide(&schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)})
	if len(got) != 1 || !strings.Contains(got[0], `"locked":true`) {
		t.Errorf("got %s, want the part to know that it runs under a lock", got)
	}
}

// A child that a run would start as it ends is not started: it would only be ended, and work under a lock that is free by then.
func TestNoChildIsStartedAtTheEnd(t *testing.T) {
	for _, lock := range []string{"", "lock: l\n"} {
		tp := record(t, lock+"steps: [{type: subworkflow, timeout: 1m, steps: [{type: workflow, target: [1, 2], concurrency: 1, steps: [activity slow]}]}]", "")
		tp.decide()
		if lock != "" {
			tp.decide(&schemas.LockAcquired{Lock: "l", Fence: 1, ScheduledEventID: tp.asked(schemas.EventLockRequested)})
		}
		tp.want(tp.decide(&schemas.ChildSuccess{ScheduledEventID: tp.asked(schemas.EventChildScheduled)}, &schemas.TimerExpired{TimerID: "0#1!timeout"}),
			`FailWorkflow {"reason":"timeout","details":{"message":"the timeout of step 0 has passed","step":"0","type":"timeout"}}`)
	}
}

// An output tells how things are when it is made: a state key that a condition, a lock or an input has read before may have changed.
func TestOutputsReadStateKeysAnew(t *testing.T) {
	for name, text := range map[string]string{
		"of the run, and its condition": "condition: {state: k, equals: 1}\nsteps: [activity a]\noutput: '${state.k}'\n",
		"of the run, and its lock":      "lock: 'l-${state.k}'\nsteps: [activity a]\noutput: '${state.k}'\n",
		"of a step, and its condition":  "steps: [{step: activity a, condition: {state: k, equals: 1}, output: '${state.k}'}]\n",
		"of a step, and its input":      "steps: [{step: 'activity a with n = ${state.k}', output: '${state.k}'}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			tp := record(t, text, "")
			tp.want(tp.decide(), `GetState {"key":"k"}`)
			read := func(v string) *schemas.StateRead {
				return &schemas.StateRead{Key: "k", Value: schemas.Payload(v), ScheduledEventID: tp.asked(schemas.EventStateRequested)}
			}
			if strings.Contains(text, "lock:") {
				tp.want(tp.decide(read("1")), `AcquireLock {"lock":"l-1"}`)
				tp.decide(&schemas.LockAcquired{Lock: "l-1", ScheduledEventID: tp.asked(schemas.EventLockRequested)})
			} else {
				tp.decide(read("1"))
			}
			tp.want(tp.decide(&schemas.ActivitySuccess{ScheduledEventID: tp.asked(schemas.EventActivityScheduled)}), `GetState {"key":"k"}`)
			tp.want(tp.decide(read("2")), `CompleteWorkflow {"result":2}`)
		})
	}
}

// A timeout that passed after the failure of its step, and is heard of together with it, is over: a retry has the whole time again.
func TestTimeoutLaterTheFailure(t *testing.T) {
	tp := record(t, "steps: [{type: subworkflow, timeout: 10m, steps: [{step: activity a, idempotent: yes}], on-error: [retry limit 2]}, sleep 1h]", "")
	tp.want(tp.decide(), `ScheduleTimer {"timerId":"0#1!timeout","startToFireTimeout":600}`, `ScheduleActivity {"activityId":"0.steps.0#1","activityType":"a","list":"main"}`)
	failed := &schemas.ActivityFailed{ScheduledEventID: tp.asked(schemas.EventActivityScheduled), Reason: "broke"}
	tp.want(tp.decide(failed, &schemas.TimerExpired{TimerID: "0#1!timeout"}), `CancelTimer {"timerId":"0#1!timeout"}`,
		`ScheduleTimer {"timerId":"0#1!timeout.2","startToFireTimeout":600}`, `ScheduleActivity {"activityId":"0.steps.0#1.1","activityType":"a","list":"main"}`)
	tp.want(tp.decide(&schemas.TimerExpired{TimerID: "0#1!timeout.2"}), `RequestCancelActivity {"activityId":"0.steps.0#1.1"}`,
		`ScheduleTimer {"timerId":"0#1.1!timeout","startToFireTimeout":600}`, `ScheduleActivity {"activityId":"0.steps.0#2","activityType":"a","list":"main"}`)
}

// A lock that is not to be had fails the run before its first step, and is no longer waited for.
func TestLockThatIsRefused(t *testing.T) {
	tp := record(t, `
lock: {name: l, limit: 2}
on-error: log not reached
steps:
- activity work
`, "")
	tp.want(tp.decide(), `AcquireLock {"lock":"l","limit":2}`)
	tp.want(tp.decide(&schemas.LockRefused{Lock: "l", Cause: schemas.CauseLockLimit, Details: "in use with another limit", ScheduledEventID: tp.asked(schemas.EventLockRequested)}),
		`FailWorkflow {"reason":"LOCK_LIMIT_DIFFERS","details":{"message":"the lock \"l\" is not to be had: in use with another limit","type":"LOCK_LIMIT_DIFFERS"}}`)
}

// A run that ends has asked for nothing in that decision: the service refuses what could not come any more, and the end with it.
func TestEndTakesBackWhatWasAskedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		flow string
		want []string
	}{
		"activity": {"steps: [activity a, activity b]", nil},
		"timeout":  {"steps: [activity a, {step: sleep 1h, timeout: 1m}]", nil},
		"state":    {"steps: [activity a, set-state k = 1]", nil},
		"read":     {"steps: [activity a, 'return ${state.k}']", nil},
		"armed":    {"steps: [{type: subworkflow, timeout: 1h, steps: [activity a]}, sleep 1h]", []string{`CancelTimer {"timerId":"0#1!timeout"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			tp := record(t, tc.flow, "")
			tp.decide()
			got := tp.decide(&schemas.ActivitySuccess{ScheduledEventID: tp.asked(schemas.EventActivityScheduled)}, &schemas.WorkflowCancelRequested{})
			tp.want(got, append(tc.want, `CancelWorkflow {"details":{"message":"the run was asked to end","type":"canceled"}}`)...)
		})
	}
}

func TestAnswersOfActivities(t *testing.T) {
	const text = "steps:\n- {step: activity a, on-error: {step: 'log ${workflow.error.type}: ${workflow.error.message}'}}\n- return ${output}\n"
	for name, tc := range map[string]struct {
		answer func(scheduled int64) schemas.Attributes
		want   string
	}{
		"json": {func(id int64) schemas.Attributes {
			return &schemas.ActivitySuccess{ScheduledEventID: id, Result: schemas.Payload(`{"a":1}`)}
		}, `CompleteWorkflow {"result":{"a":1}}`},
		"text": {func(id int64) schemas.Attributes {
			return &schemas.ActivitySuccess{ScheduledEventID: id, Result: schemas.Payload(`so so`)}
		}, `CompleteWorkflow {"result":"so so"}`},
		"bytes": {func(id int64) schemas.Attributes {
			return &schemas.ActivitySuccess{ScheduledEventID: id, Result: schemas.Payload("\xff")}
		}, "the answer cannot be used"},
		"failed": {func(id int64) schemas.Attributes {
			return &schemas.ActivityFailed{ScheduledEventID: id, Reason: "broke", Details: schemas.Payload(`"no money"`)}
		}, "broke: no money"},
		"details": {func(id int64) schemas.Attributes {
			return &schemas.ActivityFailed{ScheduledEventID: id, Reason: "broke", Details: schemas.Payload(`{"message":"m"}`)}
		}, "broke: m"},
		"canceled": {func(id int64) schemas.Attributes { return &schemas.ActivityCanceled{ScheduledEventID: id} }, "canceled: canceled"},
		"timed out": {func(id int64) schemas.Attributes {
			return &schemas.ActivityTimedOut{ScheduledEventID: id, TimeoutType: schemas.TimeoutStartToClose}
		}, "timeout: the activity ran out of time"},
		"not taken": {func(id int64) schemas.Attributes { return &schemas.ActivityScheduledTimeout{ScheduledEventID: id} }, "timeout: no worker"},
		"refused": {func(int64) schemas.Attributes {
			return &schemas.ActivityScheduleFailed{ActivityID: "0#1", Cause: "LIMIT"}
		}, "LIMIT: the service refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			tp := record(t, text, "")
			tp.want(tp.decide(), `ScheduleActivity {"activityId":"0#1","activityType":"a","list":"main","notIdempotent":true}`)
			got := strings.Join(tp.decide(tc.answer(tp.asked(schemas.EventActivityScheduled))), "\n")
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAnswersOfChildren(t *testing.T) {
	const text = "steps:\n- {step: child ship with n = 1, run_id: s-1, on-error: {step: 'log ${workflow.error.cause.type}: ${workflow.error.message}'}}\n- return ${output}\n"
	for name, tc := range map[string]struct {
		answer func(scheduled int64) schemas.Attributes
		want   string
	}{
		"success": {func(id int64) schemas.Attributes {
			return &schemas.ChildSuccess{ScheduledEventID: id, Result: schemas.Payload(`5`)}
		}, `CompleteWorkflow {"result":5}`},
		"failed":   {func(id int64) schemas.Attributes { return &schemas.ChildFailed{ScheduledEventID: id, Reason: "broke"} }, "broke: broke"},
		"canceled": {func(id int64) schemas.Attributes { return &schemas.ChildCanceled{ScheduledEventID: id} }, "canceled: the child"},
		"canceled with a word": {func(id int64) schemas.Attributes {
			return &schemas.ChildCanceled{ScheduledEventID: id, Details: schemas.Payload(`"no need"`)}
		}, "canceled: no need"},
		"out of its own time": {func(id int64) schemas.Attributes {
			return &schemas.ChildCanceled{ScheduledEventID: id, Details: schemas.Payload(`{"message":"the timeout of the workflow has passed","type":"timeout"}`)}
		}, "timeout: the timeout of the workflow has passed"},
		"a part, out of its own time": {func(id int64) schemas.Attributes {
			return &schemas.ChildCanceled{ScheduledEventID: id, Details: schemas.Payload(`{"$flow":{"failure":{"names":["timeout"],"message":"it has passed"},"state":{}}}`)}
		}, "timeout: it has passed"},
		"terminated": {func(id int64) schemas.Attributes { return &schemas.ChildTerminated{ScheduledEventID: id} }, "terminated: the child"},
		"timed out":  {func(id int64) schemas.Attributes { return &schemas.ChildTimedOut{ScheduledEventID: id} }, "timeout: the child"},
		"refused": {func(id int64) schemas.Attributes {
			return &schemas.ChildStartFailed{WorkflowID: "s-1", Cause: schemas.CauseWorkflowRunning, ScheduledEventID: id, Control: schemas.Payload(`"0#1/0"`)}
		}, "WORKFLOW_ALREADY_RUNNING: the service refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			tp := record(t, text, "")
			tp.want(tp.decide(), `StartChild {"workflowId":"s-1","workflowType":"ship","input":{"n":1},"control":"0#1/0"}`)
			got := strings.Join(tp.decide(tc.answer(tp.asked(schemas.EventChildScheduled))), "\n")
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A part of the flow is told its version, so that it runs what the run around it does.
// Details that cannot be had now are no details without content: the handler that looks for something in them has to find it when the task
// is asked again.
func TestDetailsThatCannotBeReadNow(t *testing.T) {
	tp := record(t, "steps:\n- {step: activity a, on-error: [{step: sleep 1h, condition: {error-field: code, equals: 5}}, log another error]}\n", "")
	tp.decide()
	large := schemas.RefPayload(&schemas.PayloadRef{Object: "o", Size: 300000, Digest: strings.Repeat("a", 64)})
	tp.add(&schemas.ActivityFailed{ScheduledEventID: tp.asked(schemas.EventActivityScheduled), Reason: "broke", Details: large})
	task, err := decider.NewTask(schemas.DecisionTask{
		Namespace: "default", WorkflowID: "w", Run: "r", Type: "flow", Attempt: 1, Context: tp.context,
		PreviousStartedID: tp.previous, StartedID: tp.add(&schemas.DeciderStarted{}), Events: tp.events[tp.previous:],
	})
	if err != nil {
		t.Fatal(err)
	}
	if decisions, err := tp.d.Decide(t.Context(), task); !errors.Is(err, decider.ErrPayload) {
		t.Errorf("got %v and %v, want ErrPayload", lines(t, decisions), err)
	}
}

// What is kept of a child that has an id of its own is kept until it has ended, however it has: a run may have any number of them, one
// after the other.
func TestChildrenThatHaveEndedAreForgotten(t *testing.T) {
	for name, ends := range map[string]func(id int64) schemas.Attributes{
		"success":    func(id int64) schemas.Attributes { return &schemas.ChildSuccess{ScheduledEventID: id} },
		"failed":     func(id int64) schemas.Attributes { return &schemas.ChildFailed{ScheduledEventID: id, Reason: "broke"} },
		"canceled":   func(id int64) schemas.Attributes { return &schemas.ChildCanceled{ScheduledEventID: id} },
		"terminated": func(id int64) schemas.Attributes { return &schemas.ChildTerminated{ScheduledEventID: id} },
		"timed out":  func(id int64) schemas.Attributes { return &schemas.ChildTimedOut{ScheduledEventID: id} },
		"not started": func(id int64) schemas.Attributes {
			return &schemas.ChildStartFailed{ScheduledEventID: id, Control: schemas.Payload(`"0#1/0"`), Cause: schemas.CauseWorkflowRunning}
		},
	} {
		t.Run(name, func(t *testing.T) {
			tp := record(t, "steps:\n- {type: child, workflow: ship, run_id: order-1, on-error: no-op}\n- sleep 1h\n", "")
			tp.want(tp.decide(), `StartChild {"workflowId":"order-1","workflowType":"ship","control":"0#1/0"}`)
			if s, err := restore(tp.context); err != nil || len(s.Children) != 1 {
				t.Errorf("while it runs: got the ids %v, %v, want one", s.Children, err)
			}
			tp.decide(ends(tp.asked(schemas.EventChildScheduled)))
			if s, err := restore(tp.context); err != nil || len(s.Children) != 0 {
				t.Errorf("after its end: got the ids %v, %v, want none", s.Children, err)
			}
		})
	}
}

func TestPartsOfTheFlow(t *testing.T) {
	tp := record(t, "steps:\n- {type: workflow, input: {d: '${x}'}, steps: [no-op]}\n- return ${output}\n", `{"x": 5}`)
	got := tp.decide()
	version := tp.d.store.(one).d.Version()
	tp.want(got, `StartChild {"workflowId":"r:0#1/0","workflowType":"flow","input":{"$flow":{"version":"`+version+`","part":"0","input":{"d":5}}},"control":"0#1/0","part":true}`)
	id := tp.asked(schemas.EventChildScheduled)
	tp.want(tp.decide(&schemas.ChildSuccess{ScheduledEventID: id, Result: schemas.Payload(`{"$flow":{"output":{"$duration":"1h"}}}`)}),
		`CompleteWorkflow {"result":"1h"}`)
}

func TestSignalsThatReachNobody(t *testing.T) {
	tp := record(t, "steps:\n- signal done to w-2 with 5\n- wait for signal go\n", "")
	tp.want(tp.decide(), `SignalExternal {"workflowId":"w-2","signalName":"done","input":"5","control":"done"}`)
	got := tp.decide(&schemas.SignalExternalFailed{WorkflowID: "w-2", Cause: schemas.CauseUnknownExecution, Control: schemas.Payload(`"done"`)})
	if len(got) != 1 || !strings.Contains(got[0], "signal done has reached nobody") {
		t.Errorf("got %s, want a line in the log", got)
	}
	tp.want(tp.decide(&schemas.Signal{SignalName: "go", Input: schemas.Payload("\xff")}), `CompleteWorkflow {"result":{"unreadable":"the payload is neither JSON nor text: encode bytes, for example in base64"}}`)
}

// A store that cannot answer, and a context that is none, are errors: the broker asks again, and nothing is decided.
// Nobody can send a signal without a name: a step that waits for one would wait for ever, and one that sends it would lose it unseen.
func TestSignalsWithoutName(t *testing.T) {
	for _, step := range []string{"wait for signal ${n}", "signal ${n} to someone"} {
		tp := record(t, "steps: [{step: '"+step+"', on-error: ['return ${workflow.error.message}']}, sleep 1h]", `{"n": ""}`)
		tp.want(tp.decide(), `CompleteWorkflow {"result":"input signal: the name of the signal is empty"}`)
	}
}

// An approval without a signal of its own has that of all, whether none is given or an empty text. The answer may come before the question.
func TestApprovalsWithoutName(t *testing.T) {
	for _, signal := range []string{"", ", signal: ''", ", signal: '${n}'"} {
		tp := record(t, "steps: [sleep 1h, {type: approve, message: it"+signal+"}, return done]", `{"n": ""}`)
		tp.decide(&schemas.Signal{SignalName: "approve", Input: schemas.Payload("true")})
		tp.want(tp.decide(&schemas.TimerExpired{TimerID: "0#1"}), `CompleteWorkflow {"result":"done"}`)
	}
}

func TestErrorsOfDecide(t *testing.T) {
	tp := record(t, "steps: [sleep 1s]", "")
	for name, task := range map[string]schemas.DecisionTask{
		"a context of another format": {Context: schemas.Payload(`{"drover_flow": 7}`)},
		"a context that is none":      {Context: schemas.Payload(`{`)},
		"a version that is gone":      {Context: schemas.Payload(`{"drover_flow": 1, "version": "x"}`)},
		"a part that is gone":         {Context: schemas.Payload(`{"drover_flow": 1, "version": "` + tp.d.store.(one).d.Version() + `", "part": "9"}`)},
		"no start":                    {},
	} {
		task.WorkflowID, task.Run, task.Type, task.StartedID = "w", "r", "flow", 1
		task.Events = []schemas.Event{{ID: 1, Attributes: &schemas.DeciderStarted{}}}
		tk, err := decider.NewTask(task)
		if err != nil {
			t.Fatal(err)
		}
		decisions, err := tp.d.Decide(t.Context(), tk)
		if err == nil || len(decisions) > 0 {
			t.Errorf("%s: got %d decisions and %v, want an error", name, len(decisions), err)
		}
		if strings.Contains(name, "version") && !errors.Is(err, ErrNoDefinition) {
			t.Errorf("%s: got %v, want ErrNoDefinition", name, err)
		}
	}
}

// What the broker does not carry out is refused where it is written, with its line.
func TestParseRefusesWhatIsNotThere(t *testing.T) {
	for text, want := range map[string]string{
		"steps:\n- no-op\n- {step: set-state a = 1, require: {size: 1}}": "f.yaml:3:4: require: size: no such check",
		"steps:\n- {step: set-state a = 1, require: {any: [true]}}":      "[0]: true alone can mean two things",
		"steps:\n- wait task ${x}":                                       "wait task is not there",
		"steps:\n- {step: no-op, condition: {target: 1, less-then: 2}}":  "did you mean less-than",
		"steps:\n- let x = 1 +":                                          ":2:",
	} {
		if _, err := Parse("f.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// A run whose history is full continues as new when nothing is under way, with what has just come in; if that is refused, nothing is lost.
func TestContinuesAsNew(t *testing.T) {
	const text = `
steps:
- let n = 0
- {id: again, step: 'let n = ${n} + 1'}
- {step: activity work, output: "${output}"}
- {step: activity play, timeout: 1h}
- {step: goto again, condition: {target: "${n}", less-than: 3}}
- return ${n} ${output}
`
	done := func(tp *tape, result string) schemas.Attributes {
		return &schemas.ActivitySuccess{ScheduledEventID: tp.asked(schemas.EventActivityScheduled), Result: schemas.Payload(result)}
	}
	work := func(n int) string {
		return fmt.Sprintf(`ScheduleActivity {"activityId":"2#%d","activityType":"work","list":"main","notIdempotent":true}`, n)
	}
	tp := record(t, text, "")
	tp.want(tp.decide(), work(1))
	tp.full = true
	next := tp.next(tp.decide(done(tp, `{"x": 1.0}`)))
	play := `ScheduleActivity {"activityId":"3#1","activityType":"play","list":"main","notIdempotent":true}`

	// It is refused, because a signal came: the next decision has both, and what the activity brought is not lost.
	tp.next(tp.decide(&schemas.WorkflowCloseFailed{Decision: schemas.DecideContinueAsNew, Cause: schemas.CauseUnhandledDecision}, &schemas.Signal{SignalName: "s"}))
	tp.full = false
	tp.want(tp.decide(&schemas.Signal{SignalName: "s"}), `ScheduleTimer {"timerId":"3#1!timeout","startToFireTimeout":3600}`, play)

	// It is refused for good, since the type may not be started any more: the run goes on as long as its history has room.
	refused := record(t, text, "")
	refused.want(refused.decide(), work(1))
	refused.full = true
	refused.next(refused.decide(done(refused, `{"x": 1.0}`)))
	refused.want(refused.decide(&schemas.WorkflowCloseFailed{Decision: schemas.DecideContinueAsNew, Cause: schemas.CauseWorkflowTypeDeprecated}),
		`ScheduleTimer {"timerId":"3#1!timeout","startToFireTimeout":3600}`, play)

	// It is carried out: the next run goes on with what came in.
	other := record(t, text, next)
	other.want(other.decide(), `ScheduleTimer {"timerId":"3#1!timeout","startToFireTimeout":3600}`, play)
	other.want(other.decide(done(other, "5")), `CancelTimer {"timerId":"3#1!timeout"}`, work(2))
}

// next is the input of the run that follows, if the only decision is to continue as new.
func (tp *tape) next(got []string) string {
	tp.t.Helper()
	var a struct{ Input schemas.Payload }
	if len(got) != 1 || !strings.HasPrefix(got[0], "ContinueAsNew ") {
		tp.t.Fatalf("got %s, want ContinueAsNew", got)
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(got[0], "ContinueAsNew ")), &a); err != nil {
		tp.t.Fatal(err)
	}
	return string(a.Input)
}

// A loop of which some run is always under way lets them end when the history is full, and goes on with the others in the next run.
func TestContinuesAsNewWithinLoop(t *testing.T) {
	const text = `
steps:
- {type: foreach, target: "1..5", target_var_name: n, concurrency: 2, steps: ["return ${n}"]}
- return ${output}
`
	tp := record(t, text, "")
	started := func(got []string, children ...int) {
		t.Helper()
		if len(got) != len(children) {
			t.Fatalf("got %s, want to start %d", got, children)
		}
		for i, n := range children {
			if !strings.HasPrefix(got[i], "StartChild ") || !strings.Contains(got[i], fmt.Sprintf(`"workflowId":"r:0#1/%d"`, n)) {
				t.Fatalf("got %s, want to start %d", got, children)
			}
		}
	}
	closed := func(tp *tape, scheduled int64, output int) schemas.Attributes {
		return &schemas.ChildSuccess{ScheduledEventID: scheduled, Result: schemas.Payload(fmt.Sprintf(`{"$flow":{"output":%d}}`, output))}
	}
	started(tp.decide(), 0, 1)
	second := tp.asked(schemas.EventChildScheduled)
	started(tp.decide(closed(tp, second-1, 1)), 2)
	third := tp.asked(schemas.EventChildScheduled)
	tp.full = true
	started(tp.decide(closed(tp, second, 2)))
	other := record(t, text, tp.next(tp.decide(closed(tp, third, 3))))
	started(other.decide(), 3, 4)
	last := other.asked(schemas.EventChildScheduled)
	other.want(other.decide(closed(other, last-1, 4), closed(other, last, 5)), `CompleteWorkflow {"result":[1,2,3,4,5]}`)
}

// Timeouts that are armed do not keep a run from continuing as new: the next run has what is left of them, even if nothing is.
func TestContinuesAsNewWithinTimeouts(t *testing.T) {
	const text = `
timeout: 2h
steps:
- {id: again, step: wait-for-signal go, timeout: 1h}
- goto again
`
	timer := func(id string, seconds int) string {
		return fmt.Sprintf(`ScheduleTimer {"timerId":%q,"startToFireTimeout":%d}`, id, seconds)
	}
	tp := record(t, text, "")
	tp.want(tp.decide(), timer("run!timeout", 7200), timer("0#1!timeout", 3600))
	tp.now, tp.full = tp.now.Add(20*time.Minute), true
	next := tp.next(tp.decide(&schemas.Signal{SignalName: "other"}))

	second := record(t, text, next)
	second.now = tp.now.Add(time.Minute) // its first decision is as late
	second.want(second.decide(), timer("0#1!timeout", 2340), timer("run!timeout", 5940))
	second.now, second.full = second.now.Add(2*time.Hour), true
	next = second.next(second.decide(&schemas.TimerExpired{TimerID: "0#1!timeout"}))

	// One has fired, which the next run is told, and the other one is over when that begins.
	third := record(t, text, next)
	third.now = second.now
	if got := third.decide(); len(got) != 1 || !strings.Contains(got[0], "the timeout of step 0 has passed") {
		t.Fatalf("got %s, want the failure of the step, which nobody handles", got)
	}
}
