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
		{new(schemas.StartRequest), `{"type":"w","taskPriority":"high"}`, "taskPriority"},
		{
			new(schemas.DecisionReply), `{"token":"t","decisions":[{"type":"RecordMarker","attributes":{"markerName":"m"}},{"type":"ScheduleActivity","attributes":{"heartbeatTimeout":"soon"}}]}`,
			"decisions[1]: decision ScheduleActivity: heartbeatTimeout: duration",
		},
		{new(schemas.Record), `{"events":[{"id":1,"type":"TimerScheduled","attributes":{"startToFireTimeout":[]}}]}`, "events[0]: event 1 TimerScheduled: startToFireTimeout: duration []"},
	} {
		if err := schemas.Unmarshal([]byte(tt.body), tt.into); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error with %q", tt.body, err, tt.want)
		}
	}
}
