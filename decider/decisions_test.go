package decider_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

func TestDecisionsOnTheWire(t *testing.T) {
	type input struct {
		Amount int `json:"amount"`
	}
	for name, c := range map[string]struct {
		decision schemas.Decision
		want     string
	}{
		"Schedule":          {decider.Schedule("a", "charge", input{7}), `{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"charge","input":{"amount":7}}}`},
		"no input":          {decider.Schedule("a", "charge", nil), `{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"charge"}}`},
		"bytes as they are": {decider.Schedule("a", "charge", []byte(`{"x":1}`)), `{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"charge","input":{"x":1}}}`},
		"raw JSON":          {decider.Complete(json.RawMessage(`[1]`)), `{"type":"CompleteWorkflow","attributes":{"result":[1]}}`},
		"payload":           {decider.Complete(schemas.Text("plain")), `{"type":"CompleteWorkflow","attributes":{"result":{"$text":"plain"}}}`},
		"text is JSON":      {decider.Complete("plain"), `{"type":"CompleteWorkflow","attributes":{"result":"plain"}}`},
		"options": {
			decider.Schedule("a", "charge", nil, decider.List("PCI"), decider.Priority(3), decider.ScheduleToStart(time.Second), decider.StartToClose(2*time.Second),
				decider.ScheduleToClose(3*time.Second), decider.Heartbeat(4*time.Second), decider.StartDelay(5*time.Second), decider.NotIdempotent(),
				decider.Retry(schemas.RetryPolicy{MaximumAttempts: 3})),
			`{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"charge","list":"PCI","taskPriority":3,"scheduleToStartTimeout":1,` +
				`"startToCloseTimeout":2,"scheduleToCloseTimeout":3,"heartbeatTimeout":4,"startDelay":5,"notIdempotent":true,"retry":{"maximumAttempts":3}}}`,
		},
		"more options": {
			decider.Schedule("a", "charge", nil, decider.TypeVersion("2"), decider.Control("c")),
			`{"type":"ScheduleActivity","attributes":{"activityId":"a","activityType":"charge","activityTypeVersion":"2","control":"c"}}`,
		},
		"told of a child":          {decider.StartChild("c", "kid", nil, decider.Tell()), `{"type":"StartChild","attributes":{"workflowId":"c","workflowType":"kid","tell":true}}`},
		"told of a signal":         {decider.SignalExternal("w", "go", nil, decider.Tell()), `{"type":"SignalExternal","attributes":{"workflowId":"w","signalName":"go","tell":true}}`},
		"told of a cancel request": {decider.CancelExternal("w", decider.Tell()), `{"type":"CancelExternal","attributes":{"workflowId":"w","tell":true}}`},
		"AcquireLock":              {decider.AcquireLock("l"), `{"type":"AcquireLock","attributes":{"lock":"l"}}`},
		"AcquireLock, options":     {decider.AcquireLock("l", decider.Scope("s"), decider.Limit(3), decider.Lease(time.Minute)), `{"type":"AcquireLock","attributes":{"lock":"l","scope":"s","limit":3,"lease":60}}`},
		"ReleaseLock":              {decider.ReleaseLock("l", decider.Scope("s")), `{"type":"ReleaseLock","attributes":{"lock":"l","scope":"s"}}`},
		"CancelActivity":           {decider.CancelActivity("a"), `{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}`},
		"Timer":                    {decider.Timer("t", 90*time.Second), `{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":90}}`},
		"Timer with a note": {
			decider.Timer("t", 0, decider.Control(7)),
			`{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":0,"control":7}}`,
		},
		"CancelTimer": {decider.CancelTimer("t"), `{"type":"CancelTimer","attributes":{"timerId":"t"}}`},
		"Marker":      {decider.Marker("m", 1), `{"type":"RecordMarker","attributes":{"markerName":"m","details":1}}`},
		"Complete":    {decider.Complete(nil), `{"type":"CompleteWorkflow","attributes":{}}`},
		"Fail":        {decider.Fail("broke", []string{"x"}), `{"type":"FailWorkflow","attributes":{"reason":"broke","details":["x"]}}`},
		"Cancel":      {decider.Cancel("bye"), `{"type":"CancelWorkflow","attributes":{"details":"bye"}}`},
		"SetAttributes": {
			decider.SetAttributes(map[string]string{"color": "", "shape": "round"}),
			`{"type":"SetAttributes","attributes":{"attributes":{"color":"","shape":"round"}}}`,
		},
		"StartChild": {decider.StartChild("w-1", "pay", input{7}), `{"type":"StartChild","attributes":{"workflowId":"w-1","workflowType":"pay","input":{"amount":7}}}`},
		"StartChild with options": {
			decider.StartChild("w-1", "pay", nil, decider.TypeVersion("2"), decider.Control("c"), decider.ExecutionStartToClose(time.Hour),
				decider.TaskStartToClose(time.Minute), decider.Priority(-1), decider.ActivityDefaults(schemas.ActivityDefaults{List: "l"}),
				decider.ChildPolicy(schemas.ChildAbandon), decider.Tags("x", "y")),
			`{"type":"StartChild","attributes":{"workflowId":"w-1","workflowType":"pay","workflowTypeVersion":"2","control":"c","executionStartToCloseTimeout":3600,` +
				`"taskStartToCloseTimeout":60,"taskPriority":-1,"activityDefaults":{"list":"l"},"childPolicy":"ABANDON","tagList":["x","y"]}}`,
		},
		"no limit": {
			decider.StartChild("w-1", "pay", nil, decider.ExecutionStartToClose(schemas.Unlimited.Std())),
			`{"type":"StartChild","attributes":{"workflowId":"w-1","workflowType":"pay","executionStartToCloseTimeout":"NONE"}}`,
		},
		"SignalExternal": {decider.SignalExternal("w-2", "go", true), `{"type":"SignalExternal","attributes":{"workflowId":"w-2","signalName":"go","input":true}}`},
		"SignalExternal with options": {
			decider.SignalExternal("w-2", "go", nil, decider.ToRun("r"), decider.Control(1)),
			`{"type":"SignalExternal","attributes":{"workflowId":"w-2","run":"r","signalName":"go","control":1}}`,
		},
		"CancelExternal": {decider.CancelExternal("w-2"), `{"type":"CancelExternal","attributes":{"workflowId":"w-2"}}`},
		"CancelExternal with options": {
			decider.CancelExternal("w-2", decider.ToRun("r"), decider.Control(1)),
			`{"type":"CancelExternal","attributes":{"workflowId":"w-2","run":"r","control":1}}`,
		},
		"ContinueAsNew": {decider.ContinueAsNew(input{8}), `{"type":"ContinueAsNew","attributes":{"input":{"amount":8}}}`},
		"ContinueAsNew with options": {
			decider.ContinueAsNew(nil, decider.TypeVersion("2"), decider.ExecutionStartToClose(time.Hour), decider.TaskStartToClose(time.Minute),
				decider.Priority(1), decider.ActivityDefaults(schemas.ActivityDefaults{List: "l"}), decider.ChildPolicy(schemas.ChildTerminate), decider.Tags("x")),
			`{"type":"ContinueAsNew","attributes":{"workflowTypeVersion":"2","executionStartToCloseTimeout":3600,"taskStartToCloseTimeout":60,` +
				`"taskPriority":1,"activityDefaults":{"list":"l"},"childPolicy":"TERMINATE","tagList":["x"]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(c.decision)
			if err != nil || string(got) != c.want {
				t.Fatalf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func TestPayloadWithoutJSONPanics(t *testing.T) {
	for name, do := range map[string]func(){
		"Complete":       func() { decider.Complete(make(chan int)) },
		"StartChild":     func() { decider.StartChild("w", "t", make(chan int)) },
		"SignalExternal": func() { decider.SignalExternal("w", "s", make(chan int)) },
		"ContinueAsNew":  func() { decider.ContinueAsNew(make(chan int)) },
		"Control":        func() { decider.Control(make(chan int)) },
	} {
		if recovered(do) == nil {
			t.Errorf("%s: a channel became a payload", name)
		}
	}
}

func TestStarted(t *testing.T) {
	want := &schemas.WorkflowStarted{WorkflowType: "order"}
	if got := decider.Started(numbered([]schemas.Attributes{want, &schemas.DeciderScheduled{}})); got != want {
		t.Fatalf("got %v", got)
	}
	if got := decider.Started(nil); got != nil {
		t.Fatalf("got %v of no events", got)
	}
	if got := decider.Started(numbered([]schemas.Attributes{&schemas.Signal{}})); got != nil {
		t.Fatalf("got %v of a later window", got)
	}
}
