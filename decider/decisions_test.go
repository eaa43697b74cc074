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
		"CancelActivity": {decider.CancelActivity("a"), `{"type":"RequestCancelActivity","attributes":{"activityId":"a"}}`},
		"Timer":          {decider.Timer("t", 90*time.Second), `{"type":"ScheduleTimer","attributes":{"timerId":"t","startToFireTimeout":90}}`},
		"CancelTimer":    {decider.CancelTimer("t"), `{"type":"CancelTimer","attributes":{"timerId":"t"}}`},
		"Marker":         {decider.Marker("m", 1), `{"type":"RecordMarker","attributes":{"markerName":"m","details":1}}`},
		"Complete":       {decider.Complete(nil), `{"type":"CompleteWorkflow","attributes":{}}`},
		"Fail":           {decider.Fail("broke", []string{"x"}), `{"type":"FailWorkflow","attributes":{"reason":"broke","details":["x"]}}`},
		"Cancel":         {decider.Cancel("bye"), `{"type":"CancelWorkflow","attributes":{"details":"bye"}}`},
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
	if got := recovered(func() { decider.Complete(make(chan int)) }); got == nil {
		t.Fatal("a channel became a payload")
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
