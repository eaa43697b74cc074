package execution

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// Nothing follows a closing event, whatever comes in; what somebody may miss is parked.
func TestNothingFollowsTheEnd(t *testing.T) { // S1-2, S1-3, S1-4, S1-39
	token := Token("run-1", 5, 1)
	report := func(kind schemas.ReportKind, token string) Message {
		return Report{Report: &schemas.Report{Kind: kind, Token: token, ReplyTo: "inbox", Nonce: "n"}}
	}
	for _, end := range []struct {
		status schemas.Status
		how    func(*world)
	}{
		{schemas.StatusCompleted, func(w *world) { w.answer(&schemas.CompleteWorkflow{}) }},
		{schemas.StatusFailed, func(w *world) { w.answer(&schemas.FailWorkflow{}) }},
		{schemas.StatusCanceled, func(w *world) { w.answer(&schemas.CancelWorkflow{}) }},
		{schemas.StatusTimedOut, func(w *world) { w.now = w.s.StartBase.Add(w.s.Start.ExecutionStartToCloseTimeout); w.do(AlarmFired{}) }},
	} {
		for _, tt := range []struct {
			name string
			m    Message
			dead string
		}{
			{"signal", Signal{Name: "x"}, DeadClosedWorkflow},
			{"success", report(schemas.ReportSuccess, token), DeadClosedActivity},
			{"failed", report(schemas.ReportFailed, token), DeadClosedActivity},
			{"canceled", report(schemas.ReportCanceled, token), DeadClosedActivity},
			{"success without token", report(schemas.ReportSuccess, ""), DeadClosedActivity},
			{"started", report(schemas.ReportStarted, token), ""},
			{"returned", report(schemas.ReportReturned, token), ""},
			{"reply", Reply{Reply: &schemas.DecisionReply{}}, DeadLateDecision},
			{"ring", AlarmFired{}, ""},
			{"taken", Taken{}, ""},
			{"refuse", Refuse{Cause: schemas.CauseDeciderError}, ""},
			{"pause", Pause{Request: &schemas.ExecutionRequest{}}, ""},
			{"resume", Resume{Request: &schemas.ExecutionRequest{}}, ""},
			{"start", Start{Request: &schemas.StartRequest{Run: "run-2"}}, ""},
		} {
			t.Run(string(end.status)+", then "+tt.name, func(t *testing.T) {
				w := begin(t, func(q *schemas.StartRequest) { q.TaskStartToCloseTimeout = schemas.Unlimited })
				w.decide(activity("A"), timer("T", 1e9))
				w.report("A", schemas.ReportStarted)
				w.do(Signal{Name: "end"})
				w.do(Taken{})
				end.how(w)
				if w.s.Status != end.status || !w.s.Closed() || w.s.Close == nil || w.s.Close.ID != w.s.LastID {
					t.Fatalf("status %s, close %v; want %s", w.s.Status, w.s.Close, end.status)
				}
				w.since()
				w.after(time.Hour)
				effects := w.do(tt.m)
				if w.follows(""); tt.dead != "" {
					w.refused(effects, tt.dead)
				} else if len(effects) != 0 {
					t.Fatalf("got effects %v, want none", effects)
				}
				if got := w.ask(token, 7, "n", true); got.Go {
					t.Fatalf("got %+v; a worker of a closed run must drop its task", got)
				}
				if got := w.s.Beat(&schemas.Heartbeat{Token: token}, "", w.now); !got.Gone {
					t.Fatalf("got %+v, want gone", got)
				}
				if _, wanted := w.s.WantsDecider(&w.c); wanted || w.s.NextDue(&w.c) != 0 || len(w.s.OpenEffects(w.now)) != 0 {
					t.Fatalf("a closed run still wants something: due %s, tasks %v", w.s.NextDue(&w.c), w.s.OpenEffects(w.now))
				}
			})
		}
	}
}

// Before its start a run has nothing to go by.
func TestNothingComesBeforeTheStart(t *testing.T) { // S1-1
	for _, m := range []Message{
		Signal{Name: "x"},
		AlarmFired{},
		Taken{},
		Reply{Reply: &schemas.DecisionReply{}},
		Refuse{},
		Pause{Request: &schemas.ExecutionRequest{}},
		Resume{Request: &schemas.ExecutionRequest{}},
		Report{Report: &schemas.Report{Kind: schemas.ReportSuccess, Token: "run-1.5.1"}},
	} {
		c, s := Config{}.Defaults(), New("order-1", "run-1")
		events, effects := s.Step(&c, m, 1)
		if len(events) != 0 || s.LastID != 0 {
			t.Fatalf("%T: got events %v", m, events)
		}
		if d := of[Dead](effects); len(d) != 1 || d[0].Reason != DeadInvalid {
			t.Fatalf("%T: got effects %v, want a dead letter", m, effects)
		}
		if _, wanted := s.WantsDecider(&c); wanted || s.NextDue(&c) != 0 || s.Closed() {
			t.Fatalf("%T: the run that has not begun wants something", m)
		}
	}
}
