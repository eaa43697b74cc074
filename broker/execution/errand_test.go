package execution

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/schemas"
)

// A cancel request that arrived at a run which had been asked to end already has arrived all the same: a repeat of it asks no
// run that follows.
func TestRepeatedCancelOfAnotherWorkflow(t *testing.T) { // P-5, P-6
	for name, then := range map[string]func(*family){
		"open":      func(*family) {},
		"closed":    func(f *family) { f.decide("c", &schemas.CancelWorkflow{}) },
		"continued": func(f *family) { f.decide("c", &schemas.ContinueAsNew{}) },
		"anew": func(f *family) {
			f.decide("c", &schemas.CancelWorkflow{})
			f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := household(t)
			asked := f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
			f.step(asked, Cancel{Request: &schemas.ExecutionRequest{RequestID: "ours"}})
			f.decide("p", &schemas.CancelExternal{WorkflowID: "c"})
			f.deliver("c")
			delete(f.mail, "p") // the answer
			then(f)
			f.again(f.last["p"])
			f.settle()
			f.tells(t, "p", append(slices.Clone(first), "CancelExternalScheduled", "ExternalCancelRequested")...)
			if next := f.last["c"]; next != asked && next.CancelRequested {
				t.Fatal("the run that follows was asked to cancel")
			}
			f.over()
		})
	}
}

// Only what workflows have sent is known to a run that begins anew, whatever the ids look like that people give.
func TestIDsThatLookLikeThoseOfWorkflows(t *testing.T) { // P-6
	f := household(t)
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
	f.decide("p", &schemas.SignalExternal{WorkflowID: "c", SignalName: "hello"})
	f.settle()
	f.step(f.last["c"], Signal{Name: "s", RequestID: "orders.17"})
	b, err := f.last["c"].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	restored, err := Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	f.decide("c", &schemas.CompleteWorkflow{})
	want := []string{externalSignalID("p-1", 5)}
	for _, s := range []*State{restored, f.last["c"]} {
		if got := s.ReceivedFromWorkflows(); !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-2", Type: "child"})
	f.step(f.last["c"], Signal{Name: "s", RequestID: "orders.17"})
	f.tells(t, "c", "WorkflowStarted", "DeciderScheduled", "Signal s")
}

// Whoever names the first run of a chain means the chain, and reaches its latest run.
func TestErrandForAChain(t *testing.T) { // P-5
	f := household(t)
	f.begin(&schemas.StartRequest{WorkflowID: "c", Run: "c-1", Type: "child"})
	f.decide("c", &schemas.ContinueAsNew{})
	f.decide("p", &schemas.SignalExternal{WorkflowID: "c", Run: "c-1", SignalName: "hello"}, &schemas.CancelExternal{WorkflowID: "c", Run: "c-1"})
	f.settle()
	f.tells(t, "p", append(slices.Clone(first), "SignalExternalScheduled", "CancelExternalScheduled", "ExternalSignaled", "ExternalCancelRequested")...)
	f.tells(t, "c", "WorkflowStarted", "DeciderScheduled", "Signal hello", "WorkflowCancelRequested")
}

// Runs of one workflow id count their events alike: what answers an event of the run before is not about the same event of this one.
func TestAnswersToTheRunBefore(t *testing.T) { // P-3, P-6
	for name, tt := range map[string]struct {
		asks   schemas.DecisionAttributes
		answer func(run string) Message
		want   string
	}{
		"a signal": {
			&schemas.SignalExternal{WorkflowID: "c", SignalName: "s"},
			func(run string) Message {
				return External{Answer: &schemas.ExternalAnswer{SourceRun: run, ScheduledEventID: 5, Target: schemas.Execution{WorkflowID: "c"}}}
			},
			"ExternalSignaled",
		},
		"a cancel request": {
			&schemas.CancelExternal{WorkflowID: "c"},
			func(run string) Message {
				return External{Answer: &schemas.ExternalAnswer{SourceRun: run, ScheduledEventID: 5, Cause: schemas.CauseUnknownExecution}}
			},
			"CancelExternalFailed; DeciderScheduled",
		},
		"a child": {
			&schemas.StartChild{WorkflowID: "c", WorkflowType: "child"},
			func(run string) Message {
				return Child{Report: &schemas.ChildReport{ParentRun: run, ScheduledEventID: 5, Status: schemas.StatusCompleted}}
			},
			"ChildStarted; ChildSuccess; DeciderScheduled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := decided(t, tt.asks)
			open := w.s.OpenEffects(w.now)
			if len(open) != 1 || SetBy(open[0]) != 5 {
				t.Fatalf("open are %v, want what event 5 asks for", open)
			}
			w.wantEffects(w.do(tt.answer("run-0")))
			w.follows("")
			w.do(tt.answer("run-1"))
			w.follows(tt.want)
			w.wantEffects(w.s.OpenEffects(w.now))
		})
	}
	t.Run("a child that has missed a policy", func(t *testing.T) {
		w := decided(t, &schemas.StartChild{WorkflowID: "c", WorkflowType: "child"})
		begun := func(run string) Message {
			return Child{Report: &schemas.ChildReport{ParentRun: run, ScheduledEventID: 5, Status: schemas.StatusOpen}}
		}
		w.do(Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: schemas.ChildTerminate}})
		w.wantEffects(w.do(begun("run-0")))
		if ends := of[EndChild](w.do(begun("run-1"))); len(ends) != 1 {
			t.Fatalf("the child of this run is ended %d times, want once", len(ends))
		}
	})
}

// A message that is read again is answered as it was, for its sender may not have heard: by what the history has of it.
func TestAnswersAreRepeated(t *testing.T) { // P-1, P-6
	source := schemas.Execution{WorkflowID: "p", Run: "p-1"}
	signal := func(event int64) Message {
		return Signal{Name: "s", External: &schemas.ExternalSignal{Source: source, ScheduledEventID: event}}
	}
	cancel := func(run string, event int64) Message {
		return Cancel{Request: &schemas.ExecutionRequest{Run: run, Origin: &schemas.RequestOrigin{Execution: &source, ScheduledEventID: event, FirstRun: run}}}
	}
	w := begin(t)
	w.do(signal(5))
	w.do(cancel("run-1", 6))
	for name, tt := range map[string]struct {
		m    Message
		want schemas.Cause
	}{
		"a signal that arrived":                        {signal(5), ""},
		"a signal that did not":                        {signal(7), schemas.CauseUnknownExecution},
		"a cancel request that arrived":                {cancel("run-1", 6), ""},
		"one that nobody noted, since another one had": {cancel("run-1", 7), ""},
		"one that came for the run before":             {cancel("run-0", 8), schemas.CauseUnknownExecution},
		"one that came for the run that is now":        {cancel("", 8), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := of[Answer](w.s.AnswerAgain(tt.m))
			if len(got) != 1 || got[0].To != source || got[0].Answer.Cause != tt.want {
				t.Fatalf("got %+v, want one answer to %v with the cause %q", got, source, tt.want)
			}
		})
	}
}

// A run that continues another answers by what the chain has had, and by what it was asked itself.
func TestAnswersOfAChainAreRepeated(t *testing.T) { // P-6
	source := schemas.Execution{WorkflowID: "p", Run: "p-1"}
	c, s := Config{}.Defaults(), New("order-1", "run-2")
	s.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-2", Type: "order", Origin: &schemas.StartOrigin{
		ContinuedRun: "run-1", FirstRun: "run-1", SignalIDs: []string{externalSignalID("p-1", 5)},
	}}}, 1)
	for event, want := range map[int64]schemas.Cause{5: "", 6: schemas.CauseUnknownExecution} {
		m := Cancel{Request: &schemas.ExecutionRequest{Run: "run-1", Origin: &schemas.RequestOrigin{Execution: &source, ScheduledEventID: event, FirstRun: "run-1"}}}
		got := of[Answer](s.AnswerAgain(m))
		if len(got) != 1 || got[0].Answer.Cause != want {
			t.Errorf("event %d: got %+v, want one answer with the cause %q", event, got, want)
		}
	}
	for _, m := range []Message{Signal{Name: "of a client"}, Cancel{Request: &schemas.ExecutionRequest{}}} {
		if got := s.AnswerAgain(m); len(got) != 0 {
			t.Errorf("%T: got %v, want nothing: nobody waits", m, got)
		}
	}
}

// Of what a chain has received before this run only the looks tell who has sent it: a run and an event.
func TestReceivedByAChain(t *testing.T) { // P-6
	c, s := Config{}.Defaults(), New("order-1", "run-2")
	ids := []string{"plain", "7", ".7", "a.b", "a.7b", "a.-7", "p-1.5", "p.1.6"}
	s.Step(&c, Start{Request: &schemas.StartRequest{WorkflowID: "order-1", Run: "run-2", Type: "order", Origin: &schemas.StartOrigin{
		ContinuedRun: "run-1", FirstRun: "run-1", SignalIDs: ids,
	}}}, 1)
	if got, want := s.ReceivedFromWorkflows(), []string{"p-1.5", "p.1.6"}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// A signal whose input is no longer there is a dead letter, unless it is a repeat of one that was taken when it was.
func TestSignalsAreJudgedOnce(t *testing.T) { // P-6
	w := begin(t)
	w.do(Signal{Name: "s", RequestID: "r"})
	w.follows("Signal s")
	const bad = "its payload is not there"
	if effects := w.do(Signal{Name: "s", RequestID: "r", Bad: bad}); len(effects) != 0 {
		t.Errorf("got %v for a repeat, want nothing", effects)
	}
	w.refused(w.do(Signal{Name: "s", RequestID: "r2", Bad: bad}), DeadInvalid)
	w.follows("")
}

// A child that has begun, and what another workflow has received, wake the decider only if the decision says so.
func TestTold(t *testing.T) {
	for name, tt := range map[string]struct {
		asks func(tell bool) schemas.DecisionAttributes
		done Message
		want string
	}{
		"a child": {
			func(tell bool) schemas.DecisionAttributes {
				return &schemas.StartChild{WorkflowID: "c", WorkflowType: "child", Tell: tell}
			},
			Child{Report: &schemas.ChildReport{ParentRun: "run-1", ScheduledEventID: 5, Status: schemas.StatusOpen}},
			"ChildStarted",
		},
		"a signal": {
			func(tell bool) schemas.DecisionAttributes {
				return &schemas.SignalExternal{WorkflowID: "c", SignalName: "s", Tell: tell}
			},
			External{Answer: &schemas.ExternalAnswer{SourceRun: "run-1", ScheduledEventID: 5, Target: schemas.Execution{WorkflowID: "c"}}},
			"ExternalSignaled",
		},
		"a cancel request": {
			func(tell bool) schemas.DecisionAttributes {
				return &schemas.CancelExternal{WorkflowID: "c", Tell: tell}
			},
			External{Answer: &schemas.ExternalAnswer{SourceRun: "run-1", ScheduledEventID: 5, Target: schemas.Execution{WorkflowID: "c"}}},
			"ExternalCancelRequested",
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, tell := range []bool{false, true} {
				more := func(text string) string {
					if tell {
						return text
					}
					return ""
				}
				w := decided(t, tt.asks(tell))
				w.s = w.restored() // a new owner knows
				w.do(tt.done)
				w.follows(tt.want + more("; DeciderScheduled"))
				w.do(tt.done)
				w.follows("") // it comes again

				w = decided(t, tt.asks(tell)) // while the decider is running
				w.do(Signal{Name: "x"})
				w.do(Taken{})
				w.since()
				w.do(tt.done)
				w.answer(&schemas.CompleteWorkflow{})
				if tell {
					w.follows(tt.want + "; DeciderScheduled; DeciderCompleted; WorkflowCloseFailed UNHANDLED_DECISION")
				} else {
					w.follows(tt.want + "; DeciderCompleted; WorkflowSuccess")
				}

				w = decided(t, tt.asks(tell)) // while the run is paused
				w.do(Pause{Request: &schemas.ExecutionRequest{}})
				w.since()
				w.do(tt.done)
				w.follows(tt.want)
				if w.s.Decision.Woken != tell {
					t.Errorf("in a pause: woken is %v, want %v", w.s.Decision.Woken, tell)
				}
			}
		})
	}
	t.Run("a child that has begun and ended", func(t *testing.T) {
		w := decided(t, &schemas.StartChild{WorkflowID: "c", WorkflowType: "child", Tell: true})
		w.do(Child{Report: &schemas.ChildReport{ParentRun: "run-1", ScheduledEventID: 5, Status: schemas.StatusCompleted}})
		w.follows("ChildStarted; ChildSuccess; DeciderScheduled")
	})
}
