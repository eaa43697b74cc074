package e2e

import (
	"testing"
	"time"

	"github.com/droverhq/drover/schemas"
)

// window checks what a decider may see (S1-37): the ids after previous up to started, and no other.
func window(t *testing.T, task schemas.DecisionTask, previous, started int64) {
	t.Helper()
	if task.PreviousStartedID != previous || task.StartedID != started {
		t.Fatalf("got window %d to %d, want %d to %d", task.PreviousStartedID, task.StartedID, previous, started)
	}
	for i, e := range task.Events {
		if e.ID != previous+1+int64(i) || e.ID > started {
			t.Fatalf("got event %d at place %d of the window %d to %d", e.ID, i, previous, started)
		}
	}
	if int64(len(task.Events)) != started-previous {
		t.Fatalf("got %d events, want %d", len(task.Events), started-previous)
	}
}

// S1-45: A and B in parallel, C when either is done; 23 events, event for event, with a decider and a worker that know
// JSON and nothing of ours. Each step is taken when the one before it is in the history.
func TestParallelRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	puppet := w.role("puppet-decider", "order")
	worker := w.hand("work")
	run := w.start("order", "o", nil, startOptions{DecisionTimeout: time.Hour})

	n, task := w.task(puppet)
	window(t, task, 0, 3)
	w.decide(puppet, n, task, schedule("A")+","+schedule("B"))
	worker.takes("A")
	worker.reports("B", "started")
	w.until(run, 7, schemas.EventActivityStarted)
	worker.reports("A", "started")
	w.until(run, 8, schemas.EventActivityStarted)
	worker.reports("B", "success")
	worker.acks("B")

	n, task = w.task(puppet)
	window(t, task, 3, 11)
	worker.reports("A", "success")
	worker.acks("A")
	w.until(run, 13, schemas.EventDeciderScheduled)
	w.decide(puppet, n, task, schedule("C"))

	n, task = w.task(puppet)
	window(t, task, 11, 16)
	worker.takes("C")
	worker.reports("C", "started")
	w.until(run, 17, schemas.EventActivityStarted)
	w.decide(puppet, n, task, "")
	w.until(run, 18, schemas.EventDeciderCompleted)
	worker.reports("C", "success")
	worker.acks("C")

	n, task = w.task(puppet)
	window(t, task, 16, 21)
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	w.is(run, `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderCompleted
ActivityScheduled A
ActivityScheduled B
ActivityStarted B
ActivityStarted A
ActivitySuccess B
DeciderScheduled
DeciderStarted
ActivitySuccess A
DeciderScheduled
DeciderCompleted
ActivityScheduled C
DeciderStarted
ActivityStarted C
DeciderCompleted
ActivitySuccess C
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`)
	w.verify()
}
