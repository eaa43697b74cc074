package windows_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

// asks schedules the activity drover.once with the input of the run, and completes with its result.
func asks(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
	for _, e := range task.Events() {
		switch a := e.Attributes.(type) {
		case *schemas.WorkflowStarted:
			return []schemas.Decision{schemas.Decide(&schemas.ScheduleActivity{
				ActivityID: "once", ActivityType: ops.ActivityOnce, List: ops.ServiceList, Input: a.Input,
				Retry: &schemas.RetryPolicy{NonRetryable: []string{"bad-input"}},
			})}, nil
		case *schemas.ActivitySuccess:
			return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{Result: a.Result})}, nil
		case *schemas.ActivityFailed:
			return []schemas.Decision{decider.Fail(a.Reason, string(a.Details))}, nil
		}
	}
	return nil, nil
}

// asked runs a workflow that asks, and returns what it was told.
func (h *house) asked(id string, q ops.OnceRequest) (a ops.OnceResponse, out *drover.Outcome) {
	h.t.Helper()
	run, err := h.Client.Start(h.t.Context(), "asks", q, &drover.StartOptions{ID: id})
	if err != nil {
		h.t.Fatal(err)
	}
	out = h.Wait(run)
	if out.Status == schemas.StatusCompleted {
		if err := json.Unmarshal(out.Result, &a); err != nil {
			h.t.Fatal(err)
		}
	}
	return a, out
}

// S2-12: a workflow is told whether it is the first. An attempt that was carried out and not heard of is repeated, and gets the same
// answer; another run gets another.
func TestActivity(t *testing.T) {
	live(t, func(h *house) {
		w := h.Client.Deciders(nil)
		w.Register("asks", decider.Func(asks))
		h.Go(w)
		var fails atomic.Int32
		fails.Store(2)
		h.node("a", func(what string) error {
			if strings.HasPrefix(what, "answer") && fails.Add(-1) >= 0 {
				return errors.New("nobody hears it")
			}
			return nil
		})
		first, _ := h.asked("one", ops.OnceRequest{Name: "report"})
		if !first.First || first.Period != "2000-01-01" || fails.Load() >= 0 || first.By.WorkflowID != "one" {
			h.t.Errorf("the first run got %+v", first)
		}
		if second, _ := h.asked("two", ops.OnceRequest{Name: "report"}); second.First || second.By == nil || second.By.WorkflowID != "one" {
			h.t.Errorf("the second run got %+v", second)
		}
		_, out := h.asked("three", ops.OnceRequest{Name: "report", Period: "fortnight"})
		if out.Status != schemas.StatusFailed || out.Reason != "bad-input" || !strings.Contains(string(out.Details), "fortnight") {
			h.t.Errorf("a bad period: %+v", out)
		}
	})
}

// S2-11: nothing is purged while a start may be repeated.
func TestHolds(t *testing.T) {
	live(t, func(h *house) {
		h.schedule("nightly", nil)
		h.until("00:09:00")
		var dead atomic.Bool
		kill := h.node("a", func(what string) error {
			return dies(&dead, strings.HasPrefix(what, "mark"))
		})
		h.until("00:10:03")
		kill()
		w := h.windows("b")
		if !w.Holds() {
			h.t.Error("it does not hold before it knows what there is")
		}
		h.run(w)
		time.Sleep(2 * time.Second)
		if !w.Holds() {
			h.t.Error("it does not hold while a key has no mark")
		}
		time.Sleep(time.Minute)
		if !w.Holds() {
			h.t.Error("it does not hold when a key has just got its mark: a start may be on its way")
		}
		time.Sleep(3 * time.Minute)
		if w.Holds() {
			h.t.Error("it holds without need")
		}
	})
}
