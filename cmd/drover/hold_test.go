package main

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
)

// S2-6, S2-8: describe tells what began a run, when it is asked to continue as new, and who keeps it from that.
func TestDescribeTellsOfContinuation(t *testing.T) {
	for _, tt := range []struct {
		d    schemas.DescribeResponse
		want []string
		not  string
	}{
		{
			schemas.DescribeResponse{
				Execution: schemas.ExecutionInfo{StartMode: schemas.ModeContinuation},
				Started:   schemas.WorkflowStarted{Continuation: &schemas.ContinuationPolicy{After: schemas.Seconds(3600), Events: 10_000}},
				Held:      &schemas.ContinuationHeld{Identity: "ann", Reason: "looking"},
			},
			[]string{", mode AutoStart (Continuation)", "as new after 1h0m0s or after 10000 events", "not asked to continue as new, by ann: looking"},
			"recycled",
		},
		{
			schemas.DescribeResponse{Started: schemas.WorkflowStarted{Continuation: &schemas.ContinuationPolicy{}}},
			[]string{"as new when its node is recycled"},
			"held",
		},
		{schemas.DescribeResponse{Execution: schemas.ExecutionInfo{StartMode: schemas.ModeManual}}, nil, "mode"},
	} {
		got := string(workflows.DescribeText(&tt.d, nil, time.Now()))
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("got\n%s\nwant %q in it", got, want)
			}
		}
		if strings.Contains(got, tt.not) {
			t.Errorf("got\n%s\nwant no %q in it", got, tt.not)
		}
	}
}

// A start takes a continuation policy by its flags, and names them where they are wrong.
func TestStartWithAContinuationPolicy(t *testing.T) {
	s := newService(t)
	var got schemas.StartRequest
	on(s, "start", func(req schemas.StartRequest) any {
		got = req
		return schemas.StartResponse{WorkflowID: "a", Run: "r1", Started: true}
	})
	s.drover("", "start", "order", "--id", "a", "--continue-after", "1h", "--continue-events", "500").want(t, cli.ExitDone, "started a run r1\n")
	if c := got.Continuation; c == nil || c.After != schemas.Seconds(3600) || c.Events != 500 {
		t.Fatalf("got %+v", c)
	}
	s.drover("", "start", "order", "--id", "a").want(t, cli.ExitDone, "started a run r1\n")
	if got.Continuation != nil {
		t.Fatalf("got %+v, want none", got.Continuation)
	}
	for flag, value := range map[string]string{"--continue-after": "10ms", "--continue-events": "3"} {
		s.drover("", "start", "order", flag, value).want(t, cli.ExitUsage, "", flag+": ", "say at least")
	}
}
