package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/cmd/drover/workflows"
	"github.com/droverhq/drover/schemas"
)

const somePanic = "assignment to entry in nil map\n\ngoroutine 7 [running]:\nmain.pay(0x1)\n\t/src/pay.go:17 +0x1d"

// panicked is a history with a long value, a decision that failed, one that is not made yet, and a stack.
func panicked(s *service) {
	attrs := []schemas.Attributes{
		&schemas.WorkflowStarted{WorkflowID: "o", Run: "r1", WorkflowType: "order", Input: schemas.Payload(`{"text": "` + strings.Repeat("long ", 100) + `"}`)},
		&schemas.DeciderScheduled{Attempt: 1},
		&schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderFailed{ScheduledEventID: 2, StartedEventID: 3, Cause: schemas.CauseDeciderError, Reason: "panic: no"},
		&schemas.DeciderScheduled{Attempt: 2},
		&schemas.DeciderStarted{ScheduledEventID: 5},
		&schemas.DeciderCompleted{ScheduledEventID: 5, StartedEventID: 6, Identity: "vm:1", ExecutionContext: schemas.Payload(`{"n":1}`)},
		&schemas.ActivityScheduled{ActivityID: "pay-1", ActivityType: "pay", List: "PCI", Input: schemas.Payload("12")},
		&schemas.ActivityStarted{ScheduledEventID: 8, Attempt: 1, Identity: "vm:2"},
		&schemas.ActivityFailed{ScheduledEventID: 8, StartedEventID: 9, Reason: "panic", Details: schemas.Text(somePanic)},
		&schemas.DeciderScheduled{Attempt: 1},
		&schemas.DeciderStarted{ScheduledEventID: 11},
	}
	var all []schemas.Event
	for i, a := range attrs {
		all = append(all, schemas.Event{ID: int64(i + 1), Time: at(float64(i)), Attributes: a})
	}
	on(s, "history", func(q schemas.HistoryRequest) any {
		return schemas.HistoryResponse{Run: "r1", Events: all[q.After:]}
	})
}

// U5: values are shown, and cut to the width; elsewhere to something; --full shows all of them, and stacks as lines.
func TestHistoryShowsValues(t *testing.T) {
	s := newService(t)
	panicked(s)
	for _, width := range []int{0, 80, 160} {
		r := s.wide(width, "history", "o")
		if r.code != cli.ExitDone || strings.Count(r.stdout, "\n") != 12 {
			t.Fatalf("width %d: got %+v, want 12 lines", width, r)
		}
		for line := range strings.Lines(r.stdout) {
			if n := utf8.RuneCountInString(line) - 1; width > 0 && n > width {
				t.Errorf("%d columns on a terminal of %d: %s", n, width, line)
			}
		}
		for _, want := range []string{`input={"text":"`, "reason=panic"} {
			if !strings.Contains(r.stdout, want) || strings.Contains(r.stdout, strings.Repeat("long ", 100)) {
				t.Errorf("width %d: want %q, and no long value, in\n%s", width, want, r.stdout)
			}
		}
		r = s.wide(width, "history", "o", "--full")
		for _, want := range []string{strings.Repeat("long ", 100), "\n" + strings.Repeat(" ", workflows.Indent) + "    /src/pay.go:17 +0x1d\n"} {
			if !strings.Contains(r.stdout, want) {
				t.Errorf("width %d: want %q in\n%s", width, want, r.stdout)
			}
		}
	}
}

// U5: --compact has one line for each decision.
func TestCompactHistory(t *testing.T) {
	s := newService(t)
	panicked(s)
	r := s.wide(0, "history", "o", "--compact")
	var got []string
	for line := range strings.Lines(r.stdout) {
		got = append(got, strings.Join(strings.Fields(line)[2:], " "))
	}
	want := []string{
		"Decision failed took=2.000s cause=DECIDER_ERROR reason=\"panic: no\"",
		`Decision took=2.000s context={"n":1} by=vm:1`,
		"ActivityScheduled activity=pay-1 type=pay input=12 list=PCI",
		"ActivityStarted activity=pay-1 attempt=1 by=vm:2",
		`ActivityFailed activity=pay-1 reason=panic details="assignment to entry in nil map"…`,
		"Decision asked for, not made yet",
	}
	if diff := cmp.Diff(want, got[1:]); r.code != cli.ExitDone || diff != "" {
		t.Errorf("(-want +got):\n%s\n%+v", diff, r)
	}
	s.drover("", "history", "o", "--compact", "--json").want(t, cli.ExitUsage, "", "--compact")
}

// U5: of a run that did not complete the reason comes first, and a stack is lines.
func TestDescribeTellsWhyARunFailed(t *testing.T) {
	s := newService(t)
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: "r1", Type: "order", Status: schemas.StatusFailed, StartedAt: at(0), ClosedAt: at(1)}}
	})
	details := schemas.Text(somePanic)
	on(s, "result", func(q schemas.ExecutionRequest) any {
		return schemas.ResultResponse{Run: q.Run, Status: schemas.StatusFailed, Reason: "panic", Details: details}
	})
	r := s.drover("", "describe", "o")
	for _, want := range []string{"status     failed\nreason     panic\nstarted ", "\ndetails\n  assignment to entry in nil map\n", "\n      /src/pay.go:17 +0x1d\n"} {
		if r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
			t.Errorf("want %q in\n%s%s", want, r.stdout, r.stderr)
		}
	}
	r = s.drover("", "result", "o")
	if want := "details:\n  assignment to entry in nil map\n"; r.code != cli.ExitFailed || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "\n      /src/pay.go:17 +0x1d\n") {
		t.Errorf("want %q in\n%s", want, r.stderr)
	}
	details = schemas.Payload(`{"message":"outer","cause":{"message":"no money","step":"pay"}}`)
	r = s.drover("", "describe", "o")
	if want := "reason     panic\ncause      no money (at step pay)\ndetails    {\"message\""; !strings.Contains(r.stdout, want) {
		t.Errorf("want %q in\n%s", want, r.stdout)
	}
	r = s.drover("", "describe", "o", "--json")
	if want := `"reason":"panic","cause":"no money (at step pay)","details":{"message"`; r.code != cli.ExitDone || !strings.Contains(r.stdout, want) {
		t.Errorf("want %s in\n%s", want, r.stdout)
	}
}

// A part of a history is shown in its order, with the times since the start of the run, and as a line says where to find what is
// not shown.
func TestPartOfAHistory(t *testing.T) {
	s := newService(t)
	var asked []schemas.HistoryRequest
	started := at(0)
	on(s, "describe", func(q schemas.ExecutionRequest) any {
		return schemas.DescribeResponse{Execution: schemas.ExecutionInfo{WorkflowID: q.WorkflowID, Run: "r1", Type: "order", Status: schemas.StatusOpen, StartedAt: started}}
	})
	failed := func(id int64) schemas.Event {
		return schemas.Event{ID: id, Time: at(float64(id)), Attributes: &schemas.ActivityFailed{ScheduledEventID: 8, Reason: "no"}}
	}
	on(s, "history", func(q schemas.HistoryRequest) any {
		asked = append(asked, q)
		if q.NewestFirst {
			return schemas.HistoryResponse{Run: "r1", Events: []schemas.Event{failed(30), failed(20)}, Next: 20, More: true}
		}
		return schemas.HistoryResponse{Run: "r1", Events: []schemas.Event{failed(31)}, Next: 31, Closed: true}
	})
	r := s.drover("", "history", "o", "--types", "ActivityFailed,ActivityTimedOut", "--last", "2", "--after", "3", "--follow")
	r.want(t, cli.ExitDone, "   20     +20.000s  ActivityFailed            of=8 reason=no\n"+
		"   30     +30.000s  ActivityFailed            of=8 reason=no\n   31     +31.000s  ActivityFailed            of=8 reason=no\n", "")
	types := []schemas.EventType{schemas.EventActivityFailed, schemas.EventActivityTimedOut}
	want := []schemas.HistoryRequest{
		{V: 1, WorkflowID: "o", Run: "r1", After: 3, NewestFirst: true, Types: types, Limit: 2},
		{V: 1, WorkflowID: "o", Run: "r1", After: 30, Types: types},
	}
	if len(asked) == 2 {
		asked[1].Wait = 0
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.drover("", "history", "o", "--follow", "--before", "3").want(t, cli.ExitUsage, "", "before")
	s.drover("", "history", "o", "--last", "-3").want(t, cli.ExitUsage, "", "last")
}
