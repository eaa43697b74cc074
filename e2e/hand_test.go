package e2e

import (
	"encoding/json"
	"fmt"
	"strings"

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
		h.take(l)
	}
}

// take keeps the task that a line brings.
func (h *hand) take(l stranger.Line) {
	h.t.Helper()
	var task schemas.ActivityTask
	if err := json.Unmarshal(l.Task, &task); err != nil {
		h.t.Fatalf("worker: got %+v: %v", l, err)
	}
	h.tasks[task.ActivityID] = held{l, task}
}

// answer waits for what an order has brought.
func (h *hand) answer(n int) stranger.Line {
	h.t.Helper()
	for {
		l := h.next()
		if l.Task == nil && l.N == n {
			return l
		}
		h.take(l)
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

// schedule is the decision for an activity of the list work.
func schedule(id string) string {
	return fmt.Sprintf(`{"type":"ScheduleActivity","attributes":{"activityId":%q,"activityType":"work","list":"work","startToCloseTimeout":600}}`, id)
}

func scheduleOnce(id string) string {
	return strings.Replace(schedule(id), `"list":"work"`, `"list":"work","notIdempotent":true`, 1)
}

// untilOf reads lines of a stranger until one is what is wanted.
func untilOf(p *process, wanted func(stranger.Line) bool) stranger.Line {
	for {
		if l := p.next(); wanted(l) {
			return l
		}
	}
}
