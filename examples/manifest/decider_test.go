package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
)

// play is a run in the real core, with the decider under test and activities that end as the test says.
type play struct {
	t       *testing.T
	state   *execution.State
	config  execution.Config
	events  []schemas.Event
	now     schemas.Timestamp
	context int // the largest that a decision left
	input   int // the largest input of an activity
	widest  int // the most activities that were open at once
}

func newPlay(t *testing.T, input any) *play {
	t.Helper()
	p := &play{t: t, state: execution.New("id", "run"), config: execution.Config{}.Defaults(), now: 1}
	payload, err := schemas.JSONPayload(input)
	if err != nil {
		t.Fatal(err)
	}
	p.step(execution.Start{Request: &schemas.StartRequest{WorkflowID: "id", Run: "run", Type: workflowType, Input: payload}})
	return p
}

func (p *play) step(m execution.Message) {
	events, _ := p.state.Step(&p.config, m, p.now)
	p.now++
	p.events = append(p.events, events...)
	p.widest = max(p.widest, len(p.state.Activities))
	for _, e := range events {
		if a, ok := e.Attributes.(*schemas.ActivityScheduled); ok {
			p.input = max(p.input, len(a.Input))
		}
	}
}

// decide asks the decider as the broker does, if it wants to. A reply that is lost is asked for again.
func (p *play) decide(lost bool) {
	p.t.Helper()
	if _, wanted := p.state.WantsDecider(&p.config); !wanted {
		return
	}
	p.step(execution.Taken{})
	d := p.state.Decision
	task, err := decider.NewTask(schemas.DecisionTask{
		WorkflowID: "id", Run: "run", Type: workflowType, PreviousStartedID: d.Previous, StartedID: d.Started,
		Events: p.events[d.Previous:d.Started], Context: p.state.Context, Attempt: 1,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	decisions, err := decide(p.t.Context(), task)
	if err != nil {
		p.t.Fatal(err)
	}
	if lost {
		p.step(execution.Refuse{Cause: schemas.CauseDeciderError, Reason: "lost"})
		return
	}
	p.context = max(p.context, len(task.Context()))
	p.step(execution.Reply{Reply: &schemas.DecisionReply{Decisions: decisions, Context: task.Context()}})
}

// end reports the outcome of an open activity.
func (p *play) end(a *execution.Activity, kind schemas.ReportKind, result any) {
	p.t.Helper()
	payload, err := schemas.JSONPayload(result)
	if err != nil {
		p.t.Fatal(err)
	}
	p.step(execution.Report{Report: &schemas.Report{
		Kind: kind, Token: execution.Token("run", a.ScheduledID, a.Attempt), Result: payload, Reason: "the disk is broken",
	}})
}

// work ends one open activity, any, with success.
func (p *play) work(files int) {
	p.t.Helper()
	open := p.state.OpenActivities()
	a := open[rand.IntN(len(open))]
	switch a.Scheduled.ActivityType {
	case activityList:
		p.end(a, schemas.ReportSuccess, listing{Names: "names-1", Files: files})
	case activityHash:
		p.end(a, schemas.ReportSuccess, hashed{Bytes: 10})
	default:
		p.end(a, schemas.ReportSuccess, struct{}{})
	}
}

// Whatever order things happen in and however often the decider is asked again, each file is hashed once, never more than
// width of them at a time, and nothing grows with the folder.
func TestDecider(t *testing.T) {
	for _, tc := range []struct{ files, width int }{{0, 8}, {1, 8}, {8, 8}, {9, 8}, {100, 1}, {100, 7}, {10_000, 16}} {
		p := newPlay(t, request{Dir: "/dir", Out: "/out", Scratch: "/scratch", Width: tc.width})
		for !p.state.Closed() {
			if rand.IntN(2) == 0 && len(p.state.Activities) > 0 {
				p.work(tc.files)
			} else {
				p.decide(rand.IntN(20) == 0)
			}
		}
		if p.state.Status != schemas.StatusCompleted {
			t.Fatalf("%+v: got status %s, want completed", tc, p.state.Status)
		}
		var got summary
		if err := p.state.Close.Attributes.(*schemas.WorkflowSuccess).Result.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(summary{Manifest: "/out", Files: tc.files, Bytes: 10 * int64(tc.files)}, got); diff != "" {
			t.Errorf("%+v: result (-want +got):\n%s", tc, diff)
		}
		checkHashed(t, p.events, tc.files)
		if want := max(1, min(tc.width, tc.files)); p.widest != want {
			t.Errorf("%+v: got up to %d open activities, want %d", tc, p.widest, want)
		}
		if p.context > 400 || p.input > 200 {
			t.Errorf("%+v: got contexts of %d bytes and inputs of %d, want at most 400 and 200 however many files", tc, p.context, p.input)
		}
	}
}

// checkHashed checks that every number was scheduled once, in order, between the listing and the writing.
func checkHashed(t *testing.T, events []schemas.Event, files int) {
	t.Helper()
	var types []string
	next := 0
	for _, e := range events {
		a, ok := e.Attributes.(*schemas.ActivityScheduled)
		if !ok {
			continue
		}
		if types = append(types, a.ActivityType); a.ActivityType != activityHash {
			continue
		}
		var in hashing
		if err := a.Input.Decode(&in); err != nil {
			t.Fatal(err)
		}
		if want := (hashing{Dir: "/dir", Scratch: "/scratch", Names: "names-1", N: next}); in != want {
			t.Fatalf("got input %+v, want %+v", in, want)
		}
		next++
	}
	if next != files || types[0] != activityList || types[len(types)-1] != activityWrite || len(types) != files+2 {
		t.Errorf("got %d hashed of %d activities from %s to %s, want list, %d times hash, write", next, len(types), types[0], types[len(types)-1], files)
	}
}

// A failure ends the run once the broker has tried again, and nothing is open any more.
func TestDeciderFails(t *testing.T) {
	p := newPlay(t, request{Dir: "/dir", Out: "/out", Scratch: "/scratch", Width: 4})
	p.decide(false)
	p.work(10)
	p.decide(false)
	broken, open := p.state.OpenActivities()[0], len(p.state.Activities)
	for attempt := 1; attempt <= 3; attempt++ {
		if broken.Attempt != attempt || len(p.state.Activities) != open {
			t.Fatalf("got attempt %d with %d open, want %d with %d", broken.Attempt, len(p.state.Activities), attempt, open)
		}
		p.end(broken, schemas.ReportFailed, nil)
		p.now += schemas.Timestamp(schemas.Seconds(10))
		p.step(execution.AlarmFired{})
		p.decide(false)
	}
	for open--; open > 0; open-- {
		if p.state.Closed() || len(p.state.Activities) != open {
			t.Fatalf("got status %s with %d open, want an open run with %d", p.state.Status, len(p.state.Activities), open)
		}
		p.work(10)
		p.decide(false)
	}
	failed, ok := p.state.Close.Attributes.(*schemas.WorkflowFailed)
	if want := "hash: the disk is broken"; !ok || failed.Reason != want {
		t.Fatalf("got %+v, want a failure with the reason %q", p.state.Close, want)
	}
}

// What a run is asked for comes from outside.
func TestDeciderInput(t *testing.T) {
	for _, tc := range []struct {
		name  string
		input any
		says  string
	}{
		{"no request", "x", "no request"},
		{"nothing", nil, "name all three"},
		{"too wide", request{Dir: "/d", Out: "/o", Scratch: "/s", Width: 501}, "use 1 to 500"},
		{"too narrow", request{Dir: "/d", Out: "/o", Scratch: "/s"}, "use 1 to 500"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newPlay(t, tc.input)
			p.decide(false)
			failed, ok := p.state.Close.Attributes.(*schemas.WorkflowFailed)
			if !ok || !strings.Contains(failed.Reason, tc.says) {
				t.Fatalf("got %+v, want a failure that says %q", p.state.Close, tc.says)
			}
		})
	}
}

// The state that the decider leaves is part of what people see: its names are not to change lightly.
func TestState(t *testing.T) {
	b, err := json.Marshal(state{Request: request{Dir: "/d", Out: "/o", Scratch: "/s", Width: 2}, Step: activityHash, Names: "names-1", Files: 9, Next: 5, Open: 2, Bytes: 7})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"request":{"dir":"/d","out":"/o","scratch":"/s","width":2},"step":"hash","names":"names-1","files":9,"next":5,"open":2,"bytes":7}`
	if string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
}
