package schemas_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// S2-8: a run tells what began it, one from before there were modes too, and a continuation of an automatic one is told apart.
func TestStartModes(t *testing.T) {
	for want, started := range map[schemas.StartMode]schemas.WorkflowStarted{
		schemas.ModeManual:    {},
		schemas.ModeChild:     {ParentWorkflowExecution: &schemas.Execution{WorkflowID: "p", Run: "r"}},
		schemas.ModeReplay:    {Replays: &schemas.ReplayOf{Run: "r"}, ParentWorkflowExecution: &schemas.Execution{WorkflowID: "p", Run: "r"}},
		schemas.ModeSchedule:  {StartMode: schemas.ModeSchedule},
		schemas.ModeAutoStart: {StartMode: schemas.ModeAutoStart},
	} {
		if got := started.Mode(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, mode := range schemas.StartModes() {
		want := mode
		if mode == schemas.ModeAutoStart {
			want = "AutoStart (Continuation)"
		}
		if got := mode.Continued(); got != want {
			t.Errorf("a run that continues one of %q: got %q, want %q", mode, got, want)
		}
	}
}

// S2-8: what only brokers can know nobody says from outside.
func TestRequestedStartModes(t *testing.T) {
	for mode, allowed := range map[schemas.StartMode]bool{
		"": true, schemas.ModeManual: true, schemas.ModeSchedule: true, schemas.ModeAutoStart: true,
		schemas.ModeChild: false, schemas.ModeReplay: false, schemas.ModeContinuation: false, "autostart": false,
	} {
		err := mode.ValidateRequested("startMode")
		if (err == nil) != allowed {
			t.Errorf("%q: got %v, want allowed: %v", mode, err, allowed)
		}
		refused(t, err, "startMode")
	}
}

// S2-6: a policy that would ask without end is refused.
func TestContinuationPolicies(t *testing.T) {
	for _, tt := range []struct {
		policy *schemas.ContinuationPolicy
		field  string
	}{
		{nil, ""},
		{&schemas.ContinuationPolicy{}, ""},
		{&schemas.ContinuationPolicy{After: schemas.Duration(time.Second), Events: 10}, ""},
		{&schemas.ContinuationPolicy{After: schemas.Duration(time.Second - 1)}, "continuation.after"},
		{&schemas.ContinuationPolicy{After: schemas.Unlimited}, "continuation.after"},
		{&schemas.ContinuationPolicy{Events: 9}, "continuation.events"},
		{&schemas.ContinuationPolicy{Events: -1}, "continuation.events"},
	} {
		err := tt.policy.Validate("continuation")
		if (err == nil) != (tt.field == "") {
			t.Errorf("%+v: got %v", tt.policy, err)
		}
		refused(t, err, tt.field)
	}
}

// refused: a refusal names the field and the way out.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*schemas.Error](err)
	if !ok || e.Code != schemas.CodeInvalid || e.Field != field || e.Hint == "" || !strings.Contains(e.Message, field) {
		t.Errorf("got %+v, want a refusal of the field %s with a hint", err, field)
	}
}
