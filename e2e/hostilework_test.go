package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

// askedTwice lets a puppet answer the first task with reply and the second one well. It returns the DeciderFailed.
func askedTwice(w *world, puppet *process, typ, id string, reply func(schemas.DecisionTask) []byte) *schemas.DeciderFailed {
	w.t.Helper()
	run := w.start(typ, id, nil, startOptions{DecisionTimeout: time.Hour})
	n, task := w.task(puppet)
	puppet.order(stranger.Line{N: n, Reply: reply(task)})
	n, task = w.task(puppet)
	if task.Attempt != 2 {
		w.t.Errorf("%s: got attempt %d, want 2", id, task.Attempt)
	}
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	w.is(run, `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderFailed INVALID_DECISION
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`)
	failed, ok := w.events(run)[3].Attributes.(*schemas.DeciderFailed)
	if !ok {
		w.t.Fatalf("%s: event 4 is no DeciderFailed", id)
	}
	return failed
}

// A reply that cannot be applied as a whole is refused as a whole, with the place of what is wrong, and the decider is
// asked again.
func badDecisions(w *world, _ *nats.Conn) {
	puppet := w.role("puppet-decider", "wrong")
	for i, tt := range []struct{ decisions, want string }{
		{`{"type":"LaunchRocket"}`, `decision 1: "LaunchRocket" is no decision that this version knows`},
		{`{"type":"RecordMarker","attributes":{"markerName":"m"}},{"type":"Nonsense"}`, `decision 2: "Nonsense" is no decision`},
		{`{"attributes":{}}`, "decision 1 has no type"},
		{completeDecision + `,{"type":"RecordMarker","attributes":{"markerName":"m"}}`, "decision 1: CompleteWorkflow must be the last decision of its reply"},
		{completeDecision + "," + completeDecision, "decision 1: CompleteWorkflow must be the last"},
		{schedule("A") + "," + completeDecision, "decision 1: ScheduleActivity cannot stand beside CompleteWorkflow"},
	} {
		failed := askedTwice(w, puppet, "wrong", fmt.Sprintf("wrong-%d", i), func(task schemas.DecisionTask) []byte {
			return fmt.Appendf(nil, `{"token":%q,"decisions":[%s]}`, task.Token, tt.decisions)
		})
		if !strings.Contains(failed.Reason, tt.want) {
			w.t.Errorf("%s: got reason %q, want %q", tt.decisions, failed.Reason, tt.want)
		}
	}
}

// A reply that is none is refused and kept; one with another task's token is refused.
func badReplies(w *world, _ *nats.Conn) {
	puppet := w.role("puppet-decider", "garbage")
	n := 0
	for name, body := range bodies {
		n++
		failed := askedTwice(w, puppet, "garbage", fmt.Sprintf("garbage-%d", n), func(schemas.DecisionTask) []byte { return body })
		if !strings.Contains(failed.Reason, "the reply cannot be decoded") {
			w.t.Errorf("%s: got reason %q", name, failed.Reason)
		}
		poll.Until(w.t, patience, name+" in the dead letters", func() bool {
			for _, letter := range w.dead("undecodable") {
				if bytes.Equal(letter.Body, body) && strings.HasPrefix(letter.Subject, "_INBOX.") {
					return true
				}
			}
			return false
		})
	}
	failed := askedTwice(w, puppet, "garbage", "foreign", func(schemas.DecisionTask) []byte {
		return []byte(`{"token":"another","decisions":[` + completeDecision + `]}`)
	})
	if !strings.Contains(failed.Reason, "token") {
		w.t.Errorf("got reason %q, want it to name the token", failed.Reason)
	}
}

// Ids that are in use are refused one by one; the rest of the reply stands.
func badDuplicates(w *world, _ *nats.Conn) {
	puppet := w.role("puppet-decider", "twice")
	run := w.start("twice", "twice", nil, startOptions{})
	timer := `{"type":"ScheduleTimer","attributes":{"timerId":"T","startToFireTimeout":3600}}`
	activity := strings.Replace(schedule("A"), `"list":"work"`, `"list":"nobodys"`, 1)
	n, task := w.task(puppet)
	w.decide(puppet, n, task, strings.Join([]string{activity, activity, timer, timer}, ","))
	n, task = w.task(puppet)
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	w.is(run, `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderCompleted
ActivityScheduled A
ActivityScheduleFailed A ACTIVITY_ID_ALREADY_IN_USE
TimerScheduled T
TimerScheduleFailed T TIMER_ID_ALREADY_IN_USE
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`)
}

// S1-39: a decision that comes after its deadline leaves no trace in the history.
func badLate(w *world, _ *nats.Conn) {
	puppet := w.role("puppet-decider", "slow")
	run := w.start("slow", "slow", nil, startOptions{DecisionTimeout: time.Second})
	first, late := w.task(puppet)
	w.until(run, 4, schemas.EventDeciderTimedOut)
	second, task := w.task(puppet)
	w.decide(puppet, first, late, `{"type":"FailWorkflow","attributes":{"reason":"too late"}}`)
	poll.Until(w.t, patience, "the late decision in the dead letters", func() bool {
		for _, letter := range w.dead("late-decision") {
			if strings.Contains(string(letter.Body), "too late") && strings.Contains(letter.Details, "after its deadline") {
				return true
			}
		}
		return false
	})
	// How many more had timed out by then is up to the machine.
	w.decide(puppet, second, task, completeDecision)
	answerAll(w, puppet, run)
	w.completes(run, `"done"`)
	for _, e := range w.events(run) {
		if e.Type() == schemas.EventWorkflowFailed || e.Type() == schemas.EventWorkflowCloseFailed {
			w.t.Errorf("event %d %s: the late decision has left a trace", e.ID, e.Type())
		}
	}
}

// An outcome is believed once, and only with the token of the current attempt.
func badOutcome(w *world, nc *nats.Conn) {
	puppet := w.role("puppet-decider", "picky")
	worker := w.hand("work")
	run := w.start("picky", "picky", nil, startOptions{})
	n, task := w.task(puppet)
	w.decide(puppet, n, task, schedule("A"))
	held := worker.takes("A")
	report := func(token string) {
		w.t.Helper()
		if err := nc.Publish(held.task.Report, fmt.Appendf(nil, `{"kind":"success","token":%q,"result":"forged"}`, token)); err != nil {
			w.t.Fatal(err)
		}
	}
	buried := func(reason, token, details string) {
		w.t.Helper()
		poll.Until(w.t, patience, token+" in the dead letters for "+reason, func() bool {
			for letter, err := range w.client.DeadLetters(w.t.Context(), drover.DeadOptions{Reason: reason}) {
				if err != nil {
					w.t.Fatal(err)
				}
				if letter.Subject == held.task.Report && strings.Contains(string(letter.Body), token) && strings.Contains(letter.Details, details) {
					return true
				}
			}
			return false
		})
	}
	next := strings.TrimSuffix(held.task.Token, ".1") + ".2"
	report(next)
	buried("stale-token", next, "the current one is 1")
	report("nonsense")
	buried("stale-token", "nonsense", "want the one of the task")
	report("01OTHERRUN.5.1")
	buried("stale-token", "01OTHERRUN", "the open run is "+run.RunID)
	w.is(run, "WorkflowStarted\nDeciderScheduled\nDeciderStarted\nDeciderCompleted\nActivityScheduled A")

	worker.reports("A", "success")
	worker.acks("A")
	n, task = w.task(puppet)
	report(held.task.Token)
	buried("closed-activity", held.task.Token, "is closed")
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	report(held.task.Token)
	buried("closed-activity", held.task.Token, "the workflow closed (completed) before this outcome came")
	for _, e := range w.events(run) {
		if s, ok := e.Attributes.(*schemas.ActivitySuccess); ok && string(s.Result) != `"result of A"` {
			w.t.Errorf("got result %s, want the worker's", s.Result)
		}
	}
}
