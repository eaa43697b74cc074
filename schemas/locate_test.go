package schemas_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
)

func TestErrorsNameTheField(t *testing.T) {
	for _, tt := range []struct {
		into any
		body string
		want string
	}{
		{new(schemas.StartRequest), `{"type":"w","executionStartToCloseTimeout":"5 minutes"}`, "executionStartToCloseTimeout: duration"},
		{new(schemas.StartRequest), `{"type":"w","activityDefaults":{"heartbeatTimeout":true}}`, "activityDefaults.heartbeatTimeout: duration true"},
		{new(schemas.StartRequest), `{"type":"w","input":{"$bytes":"%"}}`, "input: payload"},
		{new(schemas.Report), `{"kind":"x","token":"t","elapsed":true}`, "elapsed: duration true"},
		{new(schemas.StartRequest), `{"type":"w","taskPriority":"high"}`, "malformed: taskPriority: want a whole number of 64 bits, got a text"},
		{new(schemas.StartRequest), `{"type":"w","taskPriority":1.5}`, "malformed: taskPriority: want a whole number of 64 bits, got 1.5"},
		{new(schemas.StartRequest), `{"type":"w","workflowId":17}`, "malformed: workflowId: want a text, got a number"},
		{new(schemas.StartRequest), `{"type":"w","tagList":"a"}`, "malformed: tagList: want an array, got a text"},
		{new(schemas.StartRequest), `{"type":"w","activityDefaults":{"list":true}}`, "malformed: activityDefaults.list: want a text, got true or false"},
		{new(schemas.Report), `{"kind":"failed","token":"t","reason":404}`, "malformed: reason: want a text, got a number"},
		{new(schemas.DecisionReply), `{"token":"t","error":"boom"}`, "malformed: error: want an object, got a text"},
		{new(schemas.DecisionReply), `{"token":"t","decisions":{}}`, "malformed: decisions: want an array, got an object"},
		{new(schemas.DecisionReply), `{"token":"t","decisions":["CompleteWorkflow"]}`, "malformed: decisions[0]: want an object, got a text"},
		{new(schemas.DecisionReply), `{"token":"t","decisions":[{"type":5}]}`, "malformed: decisions[0]: type: want a text, got a number"},
		{
			new(schemas.DecisionReply), `{"token":"t","decisions":[{"type":"ScheduleActivity","attributes":{"activityId":5}}]}`,
			"malformed: decisions[0]: decision ScheduleActivity: activityId: want a text, got a number",
		},
		{
			new(schemas.DecisionReply), `{"token":"t","decisions":[{"type":"CompleteWorkflow","attributes":"done"}]}`,
			"malformed: decisions[0]: decision CompleteWorkflow: want an object, got a text",
		},
		{new(schemas.Report), `{"kind":"started","token":"t","taskSequence":-1}`, "malformed: taskSequence: want a whole number of 64 bits that is not negative, got -1"},
		{
			new(schemas.DecisionReply), `{"token":"t","decisions":[{"type":"RecordMarker","attributes":{"markerName":"m"}},{"type":"ScheduleActivity","attributes":{"heartbeatTimeout":"soon"}}]}`,
			"decisions[1]: decision ScheduleActivity: heartbeatTimeout: duration",
		},
		{new(schemas.Record), `{"events":[{"id":1,"type":"TimerScheduled","attributes":{"startToFireTimeout":[]}}]}`, "events[0]: event 1 TimerScheduled: startToFireTimeout: duration []"},
	} {
		if err := schemas.Unmarshal([]byte(tt.body), tt.into); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.body, err, tt.want)
		} else if place := schemas.Place(err); place == "" || !strings.Contains(err.Error(), place+": ") {
			t.Errorf("%s: got the place %q of %v", tt.body, place, err)
		}
	}
	if place := schemas.Place(schemas.Unmarshal([]byte(`{"type":`), new(schemas.StartRequest))); place != "" {
		t.Errorf("got the place %q of what is no JSON", place)
	}
}
