package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

func TestReplayRequestValidate(t *testing.T) {
	for _, tc := range []struct {
		field string
		q     schemas.ReplayRequest
	}{
		{"", schemas.ReplayRequest{WorkflowID: "a"}},
		{"", schemas.ReplayRequest{WorkflowID: "a", Run: "r", From: "2.steps.0", RequestID: "q", Reason: strings.Repeat("x", schemas.MaxReplayReason)}},
		{"workflowId", schemas.ReplayRequest{}},
		{"run", schemas.ReplayRequest{WorkflowID: "a", Run: "\n"}},
		{"from", schemas.ReplayRequest{WorkflowID: "a", From: strings.Repeat("x", 257)}},
		{"requestId", schemas.ReplayRequest{WorkflowID: "a", RequestID: "\x00"}},
		{"reason", schemas.ReplayRequest{WorkflowID: "a", Reason: strings.Repeat("x", schemas.MaxReplayReason+1)}},
	} {
		e, _ := errors.AsType[*schemas.Error](tc.q.Validate())
		if got := e != nil; got != (tc.field != "") || got && (e.Field != tc.field || e.Code != schemas.CodeInvalid) {
			t.Errorf("%.80v: got %v, want an error about %q", tc.q, e, tc.field)
		}
	}
}

func TestReplayPlan(t *testing.T) {
	p := &schemas.ReplayPlan{Again: []schemas.ReplayStep{
		{Ref: "0", Type: "let"}, {Ref: "1", Name: "pay", Type: "activity", NotIdempotent: true}, {Ref: "2", Type: "http", NotIdempotent: true},
	}}
	var risky []string
	for _, s := range p.Risky() {
		risky = append(risky, s.String())
	}
	if diff := cmp.Diff([]string{"1 (pay, activity)", "2 (http)"}, risky); diff != "" {
		t.Error(diff)
	}
}
