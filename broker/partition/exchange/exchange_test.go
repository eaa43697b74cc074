package exchange_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env/envtest"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// An effect goes into the inbox of the workflow that is meant, and names the event that has caused
// it. It counts as done when it is there.
func TestWhoIsToldWhat(t *testing.T) { // P-5
	completed := &schemas.WorkflowSuccess{Result: schemas.Payload(`"42"`)}
	terminated := &schemas.WorkflowTerminated{Reason: "by hand"}
	continued := &schemas.WorkflowContinuedAsNew{NewExecutionRun: "c-2"}
	orphan := child(schemas.StatusCompleted, completed)
	orphan.Start.ParentWorkflowExecution = nil
	ended := func(policy schemas.ChildPolicy) execution.EndChild {
		return execution.EndChild{
			ScheduledID: 5, Policy: policy, Child: schemas.Execution{WorkflowID: "c", Run: "c-1"},
		}
	}
	for _, tc := range []struct {
		name   string
		state  *execution.State
		effect execution.Effect
		want   string // "": nobody is told
	}{
		{
			"a child is to begin", parent(),
			execution.StartChild{ScheduledID: 5},
			"c start: c-1 for p-1 5",
		},
		{"a child that has an answer", parent(), execution.StartChild{ScheduledID: 4}, ""},
		{"a signal", parent(), execution.Request{ScheduledID: 6}, "s signal: go of p-1 6"},
		{"a cancel request", parent(), execution.Request{ScheduledID: 7}, "e cancel: e-1 by p-1 7"},
		{
			"a child is to end", parent(), ended(schemas.ChildTerminate),
			"c terminate: c-1 by p-1 0",
		},
		{
			"a child is asked to end", parent(), ended(schemas.ChildRequestCancel),
			"c cancel: c-1 by p-1 0",
		},
		{
			"a child has ended", child(schemas.StatusCompleted, completed),
			execution.Closed{},
			`p child: c-1 of p-1 5 completed "42"`,
		},
		{
			"a child was ended", child(schemas.StatusTerminated, terminated),
			execution.Closed{},
			"p child: c-1 of p-1 5 terminated by hand",
		},
		{
			"a child goes on in another run", child(schemas.StatusContinuedAsNew, continued),
			execution.Closed{},
			"p child: c-1 of p-1 5 open ",
		},
		{"nobody's child has ended", orphan, execution.Closed{}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, x := newHost(t, o)
				o.Do(func() {
					done := h.completion()
					x.Perform(tc.state, actor.Effect{Effect: tc.effect}, done)
					if done.Release(); (h.done == 1) != (tc.want == "") {
						t.Error("it counts as done before it is stored")
					}
				})
				if tc.want == "" {
					h.wantSent("performed")
				} else {
					h.wantSent("performed", tc.want)
				}
				if h.done != 1 {
					t.Errorf("it was done %d times, want once", h.done)
				}
			})
		})
	}
}

// What is answered stands in the inbox alone: it is read again after a crash until the answer is
// stored.
func TestAnAnswerIsSafeBeforeItsQuestionIsDone(t *testing.T) { // P-5
	source := schemas.Execution{WorkflowID: "p", Run: "p-1"}
	envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
		h, x := newHost(t, o)
		o.Do(func() {
			e := h.comes("s", execution.Signal{})
			f := execution.Answer{
				To: source, Answer: schemas.ExternalAnswer{SourceRun: "p-1", ScheduledEventID: 6},
			}
			x.Perform(parent(), actor.Effect{Effect: f, Cause: e}, nil)
			unknown := h.comes("nobody", execution.Cancel{})
			x.AnswerUnknown(unknown, source, 7)
			e.Completion.Release()
			if unknown.Completion.Release(); h.done != 0 {
				t.Errorf("%d are done before they are answered", h.done)
			}
		})
		h.wantSent("answered", "p external: to p-1 6 ",
			"p external: to p-1 7 UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION")
		if h.done != 2 {
			t.Errorf("%d are done, want 2", h.done)
		}
	})
}

// The start of a child that is perhaps in its inbox is sent again only while the parent has no
// answer, since the second would begin a child that nobody expects. Else its refusal may be that of
// the first while the second begins it, so the parent asks before it believes it.
func TestAStartThatIsSentAgain(t *testing.T) { // P-5
	const once, asked = "c start: c-1 for p-1 5", "c start: c-1 for p-1 5, a probe"
	for _, tc := range []struct {
		name     string
		lost     bool // nobody knows whether the first is in the inbox
		former   bool // an owner before may have sent one
		answered bool
		believed bool // the refusal
		want     []string
	}{
		{name: "it is there", believed: true, want: []string{once}},
		{name: "an owner before may have sent it", former: true, want: []string{once, asked}},
		{name: "it is lost", lost: true, want: []string{once, asked}},
		{name: "it is lost, and answered", lost: true, answered: true, believed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, x := newHost(t, o)
				h.run = &actor.Run{WorkflowID: "p", State: parent()}
				back := func() {}
				if tc.lost {
					back = h.loseInbox()
				}
				o.Do(func() {
					done := h.completion()
					f := actor.Effect{Effect: execution.StartChild{ScheduledID: 5}}
					if !tc.former {
						f.Cause = h.comes("p", execution.Reply{})
					}
					x.Perform(h.run.State, f, done)
					if done.Release(); tc.answered {
						h.run.State.Children[5].Started = 6
					}
				})
				back()
				o.Do(func() {})
				if h.done != 1 {
					t.Errorf("the start was done %d times, want once", h.done)
				}
				refused := report("", schemas.CauseWorkflowRunning)
				o.Do(func() {
					refusal := h.comes("p", execution.Child{Report: refused})
					if x.AboutAnotherRun(h.run, refusal) == tc.believed {
						t.Errorf("the refusal is believed: %v", !tc.believed)
					}
				})
				h.wantSent("sent again", tc.want...)
			})
		})
	}
}

// loseInbox takes the inbox away, until what it returns is called.
func (h *fakeHost) loseInbox() (back func()) {
	h.t.Helper()
	ctx, js := h.t.Context(), h.o.Env.Conn.JetStream()
	s, err := js.Stream(ctx, h.o.Env.NS.StreamIn(0))
	if err == nil {
		err = js.DeleteStream(ctx, h.o.Env.NS.StreamIn(0))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return func() {
		h.t.Helper()
		if _, err := js.CreateStream(ctx, s.CachedInfo().Config); err != nil {
			h.t.Fatal(err)
		}
	}
}

// A message that is about another run than the open one is taken care of here: it does not get to
// the run. What is owed for it keeps its place in the inbox until that is stored.
func TestWhatIsAboutAnotherRun(t *testing.T) {
	probe := start()
	probe.Origin.Probe = true
	final := report("", schemas.CauseWorkflowRunning)
	final.Final = true
	of := func(s *execution.State) func() (*runs.Run, error) {
		return func() (*runs.Run, error) { return &runs.Run{State: s}, nil }
	}
	never := func() (*runs.Run, error) { return nil, nil }
	later := &execution.State{
		WorkflowID: "p", Run: "p-2", Status: schemas.StatusOpen, Start: &schemas.WorkflowStarted{},
	}
	other := &execution.State{
		WorkflowID: "c", Run: "c-2", Status: schemas.StatusOpen, Start: &schemas.WorkflowStarted{},
	}
	success := &schemas.WorkflowSuccess{Result: schemas.Payload("1")}
	for _, tc := range []struct {
		name  string
		run   *execution.State // of the workflow that it comes to
		event execution.Message
		past  func() (*runs.Run, error)
		taken bool
		owed  bool
		want  []string
	}{
		{
			name: "a child of the open run has begun", run: parent(),
			event: execution.Child{Report: report(schemas.StatusOpen, "")},
		},
		{
			name: "a child of the open run is refused", run: parent(),
			event: execution.Child{Report: report("", schemas.CauseWorkflowRunning)},
		},
		{
			name: "a child is refused for good", run: parent(),
			event: execution.Child{Report: final},
		},
		{
			name: "a child of a run before has ended", run: later,
			event: execution.Child{Report: report(schemas.StatusCompleted, "")},
		},
		{
			name: "a child has begun that its parent, ended by force, did not see", run: later,
			event: execution.Child{Report: report(schemas.StatusOpen, "")},
			past:  of(terminated(schemas.ChildTerminate)), taken: true, owed: true,
			want: []string{"c terminate: c-1 by p-1 0"},
		},
		{
			name: "a child has begun whose parent has left it alone", run: later,
			event: execution.Child{Report: report(schemas.StatusOpen, "")},
			past:  of(terminated(schemas.ChildAbandon)), taken: true, owed: true,
		},
		{
			name: "a start", run: child(schemas.StatusOpen, nil),
			event: execution.Start{Request: start()},
		},
		{
			name: "a probe of the open run", run: child(schemas.StatusOpen, nil),
			event: execution.Start{Request: probe}, taken: true,
			want: []string{"p child: c-1 of p-1 5 open "},
		},
		{
			name:  "a probe of a run that has ended since",
			run:   child(schemas.StatusCompleted, success),
			event: execution.Start{Request: probe}, taken: true,
			want: []string{"p child: c-1 of p-1 5 completed 1"},
		},
		{
			name: "a probe of a run that another has followed", run: other,
			event: execution.Start{Request: probe}, taken: true,
			past: of(child(schemas.StatusCompleted, success)),
			want: []string{"p child: c-1 of p-1 5 completed 1"},
		},
		{
			name: "a probe of a run that never began", run: other,
			event: execution.Start{Request: probe}, taken: true, past: never,
			want: []string{"p child: c-1 of p-1 5  WORKFLOW_ALREADY_RUNNING, for good"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, x := newHost(t, o)
				h.run, h.past = &actor.Run{WorkflowID: tc.run.WorkflowID, State: tc.run}, tc.past
				e := h.comes(tc.run.WorkflowID, tc.event)
				o.Do(func() {
					if got := x.AboutAnotherRun(h.run, e); got != tc.taken {
						t.Errorf("it is taken care of: %v, want %v", got, tc.taken)
					}
				})
				h.wantSent("it has come", tc.want...)
				if h.done == 1 != tc.taken || slices.Contains(h.owed, e) != tc.owed {
					t.Errorf("done %d times, owed %v", h.done, h.owed)
				}
				passed := h.run.Positions[e.Log] == e.Position
				if passed != (tc.taken && !tc.owed) {
					t.Errorf("the run is past the message: %v", passed)
				}
			})
		})
	}
}

// A parent is told of a child whose history cannot be read when it can be. Of one that is damaged
// there is a dead letter, and the parent waits.
func TestAChildThatCannotBeLookedUp(t *testing.T) {
	for _, tc := range []struct {
		name   string
		failed error
		want   []string
		buried []string
	}{
		{
			name: "for a while", failed: errors.New("no leader"),
			want: []string{"p child: c-1 of p-1 5 completed 1"},
		},
		{
			name: "since it is damaged", failed: runs.ErrDamaged,
			buried: []string{dead.ReasonDamaged},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			envtest.Run(t, func(t *testing.T, o *envtest.Owner) {
				h, x := newHost(t, o)
				success := &schemas.WorkflowSuccess{Result: schemas.Payload("1")}
				began := time.Now()
				h.past = func() (*runs.Run, error) {
					if tc.want == nil || time.Since(began) < time.Minute {
						return nil, tc.failed
					}
					return &runs.Run{State: child(schemas.StatusCompleted, success)}, nil
				}
				o.Do(func() {
					e := h.comes("c", execution.Start{Request: start()})
					x.ReportOld(e, start(), 0)
					e.Completion.Release()
				})
				h.wantSent("a second later")
				if h.done != 0 || h.buried != nil {
					t.Errorf("it is given up: %v", h.buried)
				}
				o.Wait(2 * time.Minute)
				h.wantSent("two minutes later", tc.want...)
				if h.done != 1 || !slices.Equal(h.buried, tc.buried) {
					t.Errorf("done %d times, buried %q; want once, %q", h.done, h.buried, tc.buried)
				}
			})
		})
	}
}
