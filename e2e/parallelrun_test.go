package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/schemas"
)

// hand is a puppet worker with the tasks that it holds, by activity id.
type hand struct {
	*process
	w     *world
	tasks map[string]held
}

type held struct {
	line stranger.Line
	task schemas.ActivityTask
}

func (w *world) hand(list string) *hand {
	w.t.Helper()
	return &hand{process: w.role("puppet-worker", list), w: w, tasks: map[string]held{}}
}

// takes waits until the worker holds the task of an activity.
func (h *hand) takes(activity string) held {
	h.t.Helper()
	for {
		if got, ok := h.tasks[activity]; ok {
			return got
		}
		l := h.next()
		if l.Task == nil {
			h.t.Fatalf("worker: got %+v while waiting for the task of %s", l, activity)
		}
		var task schemas.ActivityTask
		if err := json.Unmarshal(l.Task, &task); err != nil {
			h.t.Fatal(err)
		}
		h.tasks[task.ActivityID] = held{l, task}
	}
}

// answer waits for what an order has brought.
func (h *hand) answer(n int) stranger.Line {
	h.t.Helper()
	for {
		l := h.next()
		if l.Task == nil && l.N == n {
			return l
		}
		var task schemas.ActivityTask
		if err := json.Unmarshal(l.Task, &task); err != nil {
			h.t.Fatalf("got %+v: %v", l, err)
		}
		h.tasks[task.ActivityID] = held{l, task}
	}
}

// reports lets the worker publish a report and returns once it is stored.
func (h *hand) reports(activity string, kind schemas.ReportKind) {
	h.t.Helper()
	got := h.takes(activity)
	body := fmt.Appendf(nil, `{"kind":%q,"token":%q,"identity":"a stranger","taskSequence":%d,"nonce":"nonce of %s","result":%q}`,
		kind, got.task.Token, got.line.Sequence, activity, "result of "+activity)
	h.order(stranger.Line{N: got.line.N, Do: "report", Body: body})
	if l := h.answer(got.line.N); l.Stored == 0 {
		h.t.Fatalf("got %+v, want the sequence of the report", l)
	}
}

func (h *hand) acks(activity string) {
	h.t.Helper()
	n := h.takes(activity).line.N
	h.order(stranger.Line{N: n, Do: "ack"})
	if l := h.answer(n); !l.Acked {
		h.t.Fatalf("got %+v, want the ack acknowledged", l)
	}
}

func schedule(id string) string {
	return fmt.Sprintf(`{"type":"ScheduleActivity","attributes":{"activityId":%q,"activityType":"work","list":"work","startToCloseTimeout":600}}`, id)
}

// window checks what a decider may see (S1-37): the ids behind previous up to started, and no other.
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
