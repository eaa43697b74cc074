package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// S2-3: an always-on workflow is added by a command, and one may see how it stands.
func TestAlwaysOnCommands(t *testing.T) {
	s := newService(t)
	var added ops.AlwaysAddRequest
	changed := true
	var refusal *schemas.Error
	on(s, "alwaysAdd", func(q ops.AlwaysAddRequest) any {
		added = q
		return ops.AlwaysResponse{Changed: changed, Error: refusal}
	})
	s.drover(
		"", "always-on", "add", "poll", "--type", "poller", "--input", "1", "--restart", "on-failure",
		"--continue-after", "30m", "--continue-events", "500", "--timeout-workflow", "NONE", "--tag", "x",
	).
		want(t, cli.ExitDone, "added always-on workflow poll\n")
	want := ops.AlwaysOn{Restart: ops.RestartOnFailure, Start: schemas.StartRequest{
		WorkflowID: "poll", Type: "poller", Input: schemas.Payload("1"),
		ExecutionStartToCloseTimeout: schemas.Unlimited, TagList: []string{"x"},
		Continuation: &schemas.ContinuationPolicy{After: schemas.Seconds(1800), Events: 500},
	}}
	if d := cmp.Diff(want, added.AlwaysOn); d != "" {
		t.Error(d)
	}
	changed = false
	s.drover("", "always-on", "add", "poll", "--type", "poller").want(
		t, cli.ExitDone, "always-on workflow poll was there before\n",
	)
	if added.AlwaysOn.Start.Continuation != nil {
		t.Errorf("got %+v, want the defaults of the server", added.AlwaysOn.Start.Continuation)
	}
	refusal = schemas.Errorf(schemas.CodeInvalid, "too few").InField(
		"start.continuation.events",
	).WithHint("say at least 10")
	s.drover("", "always-on", "add", "poll", "--type", "poller", "--continue-events", "3").
		want(t, cli.ExitUsage, "", "--continue-events: too few", "say at least 10")

	var asked ops.AlwaysRequest
	for _, verb := range []string{"alwaysStop", "alwaysStart", "alwaysRemove"} {
		on(s, verb, func(q ops.AlwaysRequest) any {
			asked = q
			return ops.AlwaysResponse{Changed: true}
		})
	}
	s.drover(
		"", "always-on", "stop", "poll", "--terminate", "--reason", "r",
	).want(t, cli.ExitDone, "stopped always-on workflow poll\n")
	if asked.ID != "poll" || !asked.Terminate || asked.Reason != "r" {
		t.Errorf("asked %+v", asked)
	}
	s.drover("", "always-on", "start", "poll").want(t, cli.ExitDone, "started always-on workflow poll\n")
	s.drover(
		"", "always-on", "remove", "poll", "--keep-run",
	).want(t, cli.ExitDone, "removed always-on workflow poll\n")
	if !asked.KeepRun {
		t.Errorf("asked %+v", asked)
	}
	for args, want := range map[string]string{
		"always-on":       "a command is missing",
		"always-on ad":    "did you mean add?",
		"always-on add a": "--type is missing: say which workflow it is",
		"always-on add a --type t --restart never": `--restart is "never"; want always or on-failure`,
		"always-on stop a --terminate --keep-run":  "exclude each other",
		"always-on stop": "ID is missing",
	} {
		s.drover("", strings.Fields(args)...).want(t, cli.ExitUsage, "", want)
	}
}

func TestAlwaysOnShow(t *testing.T) {
	s := newService(t)
	r := ops.AlwaysOnRecord{
		AlwaysOn: ops.AlwaysOn{
			Start: schemas.StartRequest{WorkflowID: "poll", Type: "poller"},
		}, CreatedAt: at(0), Identity: "ann",
		Starts: 11, Run: "r11", StartedAt: at(5), Status: schemas.StatusFailed, EndReason: "no-route",
		EndedAt: at(9), Failures: 10, NotBefore: at(309),
	}
	on(s, "alwaysShow", func(ops.AlwaysRequest) any { return ops.AlwaysResponse{Record: &r} })
	on(s, "alwaysList", func(ops.AlwaysListRequest) any {
		return ops.AlwaysListResponse{AlwaysOn: []ops.AlwaysOnRecord{r}}
	})
	s.drover("", "always-on", "show", "poll").want(t, cli.ExitDone, `workflow    poll
type        poller
restart     always
state       failing since 2026-01-02 03:04:14.000Z
run         r11, begun 2026-01-02 03:04:10.000Z
starts      11
last end    failed 2026-01-02 03:04:14.000Z no-route
failures    10 in a row
next start  2026-01-02 03:09:14.000Z
added       2026-01-02 03:04:05.000Z by ann
`)
	got := s.drover("", "always-on", "list")
	if got.code != cli.ExitDone || !strings.Contains(
		got.stdout, "failing",
	) || !strings.Contains(got.stdout, "poller") {
		t.Errorf("got %+v", got)
	}
}

// How an always-on workflow stands, and since when.
func TestAlwaysState(t *testing.T) {
	for want, r := range map[string]ops.AlwaysOnRecord{
		"stopped":  {Stopped: true, StoppedAt: 1, Open: true},
		"running":  {Open: true, StartedAt: 1},
		"failing":  {Failures: ops.FailingAfter, EndedAt: 1},
		"starting": {CreatedAt: 1},
		"waiting":  {Status: schemas.StatusFailed, EndedAt: 1, NotBefore: 2},
		"ended": {
			Status: schemas.StatusCompleted, EndedAt: 1, AlwaysOn: ops.AlwaysOn{
				Restart: ops.RestartOnFailure,
			},
		},
	} {
		if got, since := schedules.AlwaysState(&r); got != want || since != 1 {
			t.Errorf("got %s since %d of %+v, want %s since 1", got, since, r, want)
		}
	}
	row := schedules.AlwaysRow(&ops.AlwaysOnRecord{Open: true, StartedAt: at(0)}, at(60).Time())
	if row[3] != cli.Span(time.Minute) {
		t.Errorf("got %v", row)
	}
}
