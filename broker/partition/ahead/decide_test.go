package ahead_test

import (
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// The outcome and the decision upon it happen together, at the time that the worker assumed, if the
// run stands where it stood when the task was offered. Else the decision leaves no trace, and the
// outcome is taken as any other.
func TestWhenADecisionAheadCounts(t *testing.T) { // ADR 0031
	for name, c := range map[string]struct {
		change func(*answer)
		want   bool
	}{
		"as it should be": {func(*answer) {}, true},
		"a signal has come": {func(s *answer) {
			s.run.State.Step(s.Env.Config(), execution.Signal{Name: "s"}, s.run.State.LastTime)
		}, false},
		"pending": {func(s *answer) {
			s.run.Pending = make([]actor.Group, 1)
		}, false},
		"being written": {func(s *answer) {
			s.run.Inflight = &actor.Commit{}
		}, false},
		"a decider is asked": {func(s *answer) {
			s.run.Decider.Sent(&actor.Ask{}, false)
		}, false},
		"nobody listens":     {func(s *answer) { s.run.Decider.EnterBacklog() }, false},
		"the owner leaves":   {func(s *answer) { s.host.leaving = true }, false},
		"later than now":     {func(s *answer) { s.e.Ahead.At = s.e.At + 1 }, false},
		"before the last":    {func(s *answer) { s.e.Ahead.At = s.run.State.LastTime - 1 }, false},
		"of another offer":   {func(s *answer) { s.e.Ahead.Token = "r1.9.0.x" }, false},
		"upon no success":    {func(s *answer) { kind(s.e, schemas.ReportFailed) }, false},
		"without a decision": {func(s *answer) { s.e.Ahead = nil }, false},
		"undecodable":        {func(s *answer) { s.e.Ahead.Reply = []byte("?") }, false},
		"the decider failed": {func(s *answer) {
			s.e.Ahead.Reply = packed(s.t, &schemas.DecisionReply{
				Token: s.e.Ahead.Token, Error: &schemas.DecisionError{},
			})
		}, false},
		"the start is announced": {func(s *answer) {
			s.run.Tasks.Offers[0].Activity.Started = 6
		}, false},
		"of a former attempt": {func(s *answer) {
			s.run.Tasks.Offers[0].Activity.Attempt = 2
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				k := newRig(t)
				s := k.scene()
				r, a := s.run, s.activity
				k.do(func() { k.Offer(r, a, nil) })
				if len(k.offered) != 1 {
					t.Fatalf("not offered")
				}
				token, at := k.offered[0].Token, k.host.Now()
				reply := &schemas.DecisionReply{
					Token:     token,
					Decisions: []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})},
				}
				e := &actor.Message{
					WorkflowID: "o", At: at.Add(schemas.Duration(time.Second)), Log: intake.None,
					Event: execution.Report{List: "main", Report: &schemas.Report{
						Kind: schemas.ReportSuccess, Token: execution.Token("r1", a.ScheduledID, 1),
					}},
					Ahead: &schemas.AheadDecision{At: at, Token: token, Reply: packed(t, reply)},
				}
				c.change(&answer{s, e})
				decided, came := false, e.At
				k.do(func() { decided = k.Decide(r, e) })
				if decided != c.want || r.State.Closed() != c.want || len(k.host.events) > 0 != c.want {
					t.Errorf("decided: %t, events %v; want %t", decided, k.host.events, c.want)
				}
				if !c.want && e.At != came {
					t.Errorf("the outcome is of %v now, and came at %v", e.At, came)
				}
				if !c.want {
					return
				}
				var got []schemas.EventType
				for _, e := range k.host.events {
					if got = append(got, e.Type()); e.Time != at {
						t.Errorf("%s is of %v, want %v", e.Type(), e.Time, at)
					}
				}
				want := []schemas.EventType{
					schemas.EventActivityStarted, schemas.EventActivitySuccess, schemas.EventDeciderScheduled,
					schemas.EventDeciderStarted, schemas.EventDeciderCompleted, schemas.EventWorkflowSuccess,
				}
				if !slices.Equal(got, want) {
					t.Errorf("happened %v, want %v", got, want)
				}
			})
		})
	}
}

// answer is a message with an outcome and a decision, as it comes.
type answer struct {
	*scene
	e *actor.Message
}

func kind(e *actor.Message, k schemas.ReportKind) { e.Event.(execution.Report).Report.Kind = k }

func packed(t *testing.T, reply *schemas.DecisionReply) []byte {
	t.Helper()
	body, err := schemas.Marshal(reply)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
