package e2e

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

const fiveEvents = `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`

// S1-44: five events, event for event, with a decider that knows JSON and nothing of ours. The profile is single.
func TestEmptyRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded()
	w.role("stranger-decider", "order")
	run := w.start("order", "o", map[string]int{"n": 1}, startOptions{})
	w.completes(run, `"done"`)
	w.is(run, fiveEvents)
	events := w.events(run)
	if a, ok := events[2].Attributes.(*schemas.DeciderStarted); !ok || a.ScheduledEventID != 2 {
		t.Fatalf("got %+v, want a DeciderStarted of event 2", events[2].Attributes)
	}
	if a, ok := events[3].Attributes.(*schemas.DeciderCompleted); !ok || a.StartedEventID != 3 || a.ScheduledEventID != 2 {
		t.Fatalf("got %+v, want a DeciderCompleted of events 2 and 3", events[3].Attributes)
	}
	w.verify()
}

// S1-44 with kill -9 of the server. What was acknowledged is there, and the history is the same five events exactly.
func TestEmptyRunWhileTheServerDies(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		when func(w *world, server, puppet *process, start func())
	}{
		{"once the start is acknowledged", func(_ *world, server, _ *process, start func()) {
			start()
			server.Kill()
		}},
		{"while a decider has the task", func(w *world, server, puppet *process, start func()) {
			start()
			w.task(puppet)
			server.Kill()
		}},
		{"while a decider has the task and the history says so", func(w *world, server, puppet *process, start func()) {
			start()
			w.task(puppet)
			w.until(w.client.Run("o", ""), 3, schemas.EventDeciderStarted)
			server.Kill()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			server := w.embedded()
			puppet := w.role("puppet-decider", "order")
			tt.when(w, server, puppet, func() {
				// The decision's own limit is far away: no DeciderTimedOut may come between, however slow the machine.
				w.start("order", "o", nil, startOptions{DecisionTimeout: time.Hour})
			})
			w.embedded()
			run := w.client.Run("o", "")
			answerAll(w, puppet, run)
			w.completes(run, `"done"`)
			w.is(run, fiveEvents)
			w.verify()
		})
	}
}

// S1-44 and S1-46 with kill -9 of the decider. One that had taken the task is timed out, exactly once; one that had not
// leaves no trace.
func TestEmptyRunWhileTheDeciderDies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")

	early := w.role("puppet-decider", "early")
	first := w.start("early", "warm", nil, startOptions{})
	n, task := w.task(early)
	w.decide(early, n, task, completeDecision)
	w.completes(first, `"done"`) // so it listens for sure
	early.Kill()
	w.deaf("early")
	before := w.start("early", "before", nil, startOptions{})
	w.role("stranger-decider", "early")
	w.completes(before, `"done"`)
	w.is(before, fiveEvents)

	victim := w.role("puppet-decider", "late")
	during := w.start("late", "during", nil, startOptions{DecisionTimeout: 2 * time.Second})
	w.task(victim)
	victim.Kill()
	w.role("stranger-decider", "late")
	w.completes(during, `"done"`)
	w.is(during, `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderTimedOut START_TO_CLOSE
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`)
	w.verify()
}
