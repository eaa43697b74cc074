package execution

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// E5. Who decides the same again after each refusal is asked again later and later, and then no more: whatever was refused, the pause names it.
func TestRefusedAgainAndAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		first, again []schemas.DecisionAttributes
		says         string
	}{
		"activity": {
			[]schemas.DecisionAttributes{&schemas.ScheduleActivity{ActivityID: "a", ActivityType: "w"}},
			[]schemas.DecisionAttributes{&schemas.ScheduleActivity{ActivityID: "a", ActivityType: "w"}},
			`ScheduleActivity "a" with ACTIVITY_ID_ALREADY_IN_USE: activityId: the activity of event 5 bears it and is open`,
		},
		"timer": {
			[]schemas.DecisionAttributes{&schemas.ScheduleTimer{TimerID: "t", StartToFireTimeout: schemas.Seconds(1e6)}},
			[]schemas.DecisionAttributes{&schemas.ScheduleTimer{TimerID: "t", StartToFireTimeout: schemas.Seconds(1e6)}},
			`ScheduleTimer "t" with TIMER_ID_ALREADY_IN_USE`,
		},
		"unknown activity": {nil, []schemas.DecisionAttributes{&schemas.RequestCancelActivity{ActivityID: "x"}}, `RequestCancelActivity "x" with ACTIVITY_ID_UNKNOWN`},
		"unknown timer":    {nil, []schemas.DecisionAttributes{&schemas.CancelTimer{TimerID: "x"}}, `CancelTimer "x" with TIMER_ID_UNKNOWN`},
		"marker":           {nil, []schemas.DecisionAttributes{&schemas.RecordMarker{}}, `RecordMarker with INVALID_ATTRIBUTES`},
		"replay point":     {nil, []schemas.DecisionAttributes{&schemas.SetReplayPoint{}}, `RecordMarker with INVALID_ATTRIBUTES: replay point`},
		"child":            {nil, []schemas.DecisionAttributes{&schemas.StartChild{WorkflowID: "order-1", WorkflowType: "T"}}, `StartChild "order-1" with WORKFLOW_ALREADY_RUNNING`},
		"signal":           {nil, []schemas.DecisionAttributes{&schemas.SignalExternal{WorkflowID: "w"}}, `SignalExternal "w" with INVALID_ATTRIBUTES: signalName`},
		"cancel":           {nil, []schemas.DecisionAttributes{&schemas.CancelExternal{}}, `CancelExternal with INVALID_ATTRIBUTES: workflowId`},
		"lock":             {[]schemas.DecisionAttributes{&schemas.AcquireLock{Lock: "l"}}, []schemas.DecisionAttributes{&schemas.AcquireLock{Lock: "l"}}, `AcquireLock "l" with LOCK_ALREADY_REQUESTED`},
		"release":          {nil, []schemas.DecisionAttributes{&schemas.ReleaseLock{}}, `ReleaseLock with INVALID_ATTRIBUTES`},
		"read":             {nil, []schemas.DecisionAttributes{&schemas.GetState{}}, `a request for the state key with INVALID_ATTRIBUTES`},
		"write":            {nil, []schemas.DecisionAttributes{&schemas.SetState{Key: "k", Require: schemas.Text("nonsense")}}, `a request for the state key "k" with INVALID_ATTRIBUTES: require`},
		"clear":            {nil, []schemas.DecisionAttributes{&schemas.ClearState{}}, `a request for the state key with INVALID_ATTRIBUTES`},
		"continuation":     {nil, []schemas.DecisionAttributes{&schemas.ContinueAsNew{ChildPolicy: "EAT"}}, `ContinueAsNew with INVALID_ATTRIBUTES: childPolicy`},
		"several":          {nil, []schemas.DecisionAttributes{&schemas.CancelTimer{TimerID: "x"}, &schemas.RecordMarker{}}, `CancelTimer "x" with TIMER_ID_UNKNOWN`},
		"beside an end":    {nil, []schemas.DecisionAttributes{&schemas.CancelTimer{TimerID: "x"}, &schemas.CompleteWorkflow{}}, `CancelTimer "x" with TIMER_ID_UNKNOWN`},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			if tt.first != nil {
				w.decide(tt.first...)
				w.do(Signal{Name: "wake"})
			}
			begun, last := w.now, time.Duration(0)
			for n := 1; w.s.Paused == nil; n++ {
				wait, wanted := w.wanted()
				if !wanted || n > w.c.DeciderAttempts {
					t.Fatalf("try %d: a decider is wanted is %v", n, wanted)
				}
				if n > 1 && wait <= 0 || wait < last && wait < time.Duration(w.c.DeciderBackoffCap) {
					t.Fatalf("try %d: it is asked again after %s, and was after %s before", n, wait, last)
				}
				last = wait
				w.after(max(wait, 0))
				w.decide(tt.again...)
			}
			want := fmt.Sprintf("the decider failed %d times in a row: everything that it decided was refused, %s", w.c.DeciderAttempts, tt.says)
			if got := w.s.Paused; got.Cause != schemas.CauseDeciderAttempts || !strings.HasPrefix(got.Reason, want) {
				t.Fatalf("it is paused as %s: %s\nwant %s", got.Cause, got.Reason, want)
			}
			if took := w.now.Sub(begun); took > time.Minute || w.s.LastID > 100 {
				t.Errorf("%d events in %s", w.s.LastID, took)
			}
			if again := w.restored(); again.Decision != w.s.Decision {
				t.Errorf("the snapshot has %+v, want %+v", again.Decision, w.s.Decision)
			}
			w.do(Resume{Request: &schemas.ExecutionRequest{}})
			if wait, wanted := w.wanted(); !wanted || wait > 0 {
				t.Errorf("when it is resumed, a decider is wanted is %v, after %s", wanted, wait)
			}
		})
	}
}

// E5. What is carried out in part, what is empty, and what only comes at a bad moment is no failure, and ends a row of them.
func TestWhatIsNoFailure(t *testing.T) {
	bad := &schemas.CancelTimer{TimerID: "x"}
	for name, tt := range map[string]struct {
		came      []Message
		decisions []schemas.DecisionAttributes
		failures  int
	}{
		"refused":                          {nil, []schemas.DecisionAttributes{bad}, 4},
		"in part, the first":               {nil, []schemas.DecisionAttributes{&schemas.RecordMarker{MarkerName: "m"}, bad}, 0},
		"in part, the last":                {nil, []schemas.DecisionAttributes{bad, &schemas.RecordMarker{MarkerName: "m"}}, 0},
		"nothing":                          {nil, nil, 0},
		"an activity that had not started": {nil, []schemas.DecisionAttributes{&schemas.RequestCancelActivity{ActivityID: "a"}}, 0},
		"an end over a signal":             {[]Message{Signal{Name: "s"}}, []schemas.DecisionAttributes{&schemas.CompleteWorkflow{}}, 0},
		"refused over a signal":            {[]Message{Signal{Name: "s"}}, []schemas.DecisionAttributes{bad}, 4},
		"attributes":                       {nil, []schemas.DecisionAttributes{&schemas.SetAttributes{Attributes: map[string]string{"k": "v"}}, bad}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := decided(t, &schemas.ScheduleActivity{ActivityID: "a", ActivityType: "w"})
			w.do(Signal{Name: "wake"})
			w.decide(bad)
			w.do(Taken{})
			w.do(Refuse{Cause: schemas.CauseDeciderError, Reason: "broke"})
			w.decide(bad)
			if got := w.s.Decision.Failures; got != 3 {
				t.Fatalf("%d failures, want 3", got)
			}
			w.do(Taken{})
			for _, m := range tt.came {
				w.do(m)
			}
			w.answer(tt.decisions...)
			if got := w.s.Decision.Failures; got != tt.failures {
				t.Errorf("%d failures, want %d\n%s", got, tt.failures, w.history())
			}
		})
	}
}
