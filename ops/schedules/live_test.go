package schedules_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/drovertest"
	"github.com/droverhq/drover/internal/sample"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

const ns = subject.Namespace("default")

// live runs fn with a whole Drover in virtual time, a scheduler, and deciders of types: "quick" completes with its input, "long" when it is
// signaled, "poor" fails.
func live(t *testing.T, fn func(t *testing.T, e *drovertest.Env)) {
	t.Helper()
	sample.OneOfEight(t)
	drovertest.Run(t, &drovertest.Options{Partitions: 1}, func(t *testing.T, e *drovertest.Env) {
		s, err := schedules.New(schedules.Options{Conn: natsconn.Of(e.Client), Namespace: ns, Node: "n1"})
		if err != nil {
			t.Fatal(err)
		}
		w := e.Client.Deciders(nil)
		w.Register("quick", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			start, _ := task.Events()[0].Attributes.(*schemas.WorkflowStarted)
			return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{Result: start.Input})}, nil
		}))
		w.Register("long", decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
			for _, ev := range task.Events() {
				if ev.Type() == schemas.EventSignal {
					return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
				}
			}
			return nil, nil
		}))
		e.Go(w, s)
		select {
		case <-s.Settled():
		case <-time.After(time.Minute):
			t.Fatal("the scheduler has not settled what there was")
		}
		fn(t, e)
	})
}

// ask asks a verb; the test ends at a refusal.
func ask(t *testing.T, e *drovertest.Env, verb string, q any) *ops.ScheduleResponse {
	t.Helper()
	a := try(t, e, verb, q)
	if a.Error != nil {
		t.Fatalf("%s: %v (%s, field %s)", verb, a.Error, a.Error.Code, a.Error.Field)
	}
	return a
}

func try(t *testing.T, e *drovertest.Env, verb string, q any) *ops.ScheduleResponse {
	t.Helper()
	body, err := schemas.MarshalJSON(q)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	header := natsconn.Header{schemas.ContentTypeHeader: {schemas.ContentTypeJSON}}
	m, err := natsconn.Of(e.Client).Request(ctx, ns.API(verb), header, body)
	// A scheduler that has settled what there was may be about to serve.
	for errors.Is(err, natsconn.ErrNoResponders) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		m, err = natsconn.Of(e.Client).Request(ctx, ns.API(verb), header, body)
	}
	if err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
	a := new(ops.ScheduleResponse)
	if err := schemas.Unmarshal(m.Data, a); err != nil {
		t.Fatalf("%s: %v: %s", verb, err, m.Data)
	}
	return a
}

// S2-10: a schedule starts a run a slot, which tells what it is of.
func TestAScheduleStartsARunASlot(t *testing.T) {
	live(t, func(t *testing.T, e *drovertest.Env) {
		ask(t, e, "scheduleCreate", &ops.ScheduleCreateRequest{Schedule: ops.Schedule{
			ID:    "every.* minute",
			Times: &ops.ScheduleTimes{Cron: []string{"* * * * *"}},
			Action: ops.ScheduleAction{Start: &schemas.StartRequest{
				Type: "quick", Input: schemas.Payload(`{"slot":"${slot}","last":"${last.result}","at":"on ${last.slot}","n":12345678901234567890}`),
			}},
		}})
		time.Sleep(3*time.Minute + time.Second)
		a := ask(t, e, "scheduleShow", &ops.ScheduleRequest{ID: "every.* minute"})
		if c := a.State.Counts; c.Started != 3 || c.Done != 3 {
			t.Errorf("got %+v, want three slots done", c)
		}
		if len(a.NextTimes) != 10 {
			t.Errorf("got %d next times, want 10", len(a.NextTimes))
		}
		var slots []string
		for _, s := range a.State.Recent {
			d, err := e.Client.Run(s.WorkflowID, s.Run).Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slots = append(slots, d.Started.Attributes["slot"])
			if d.Started.StartMode != schemas.ModeSchedule || d.Started.Attributes["schedule"] != "every.* minute" {
				t.Errorf("got %+v, want the mode Schedule and the schedule's id", d.Started)
			}
			if s.WorkflowID != "every.* minute/"+d.Started.Attributes["slot"] {
				t.Errorf("got workflow id %q", s.WorkflowID)
			}
		}
		if got, want := strings.Join(slots, " "), "2000-01-01T00:03:00Z 2000-01-01T00:02:00Z 2000-01-01T00:01:00Z"; got != want {
			t.Errorf("got slots %s, want %s", got, want)
		}
		var third struct {
			Slot, At string
			Last     struct{ Slot string }
			N        uint64
		}
		last := a.State.Recent[0]
		if err := e.Client.Run(last.WorkflowID, last.Run).Result(t.Context(), &third); err != nil {
			t.Fatal(err)
		}
		if third.Slot != slots[0] || third.Last.Slot != slots[1] || third.At != "on "+slots[1] || third.N != 12345678901234567890 {
			t.Errorf("got input %+v", third)
		}
		listed := 0
		for range e.Client.List(t.Context(), drover.ListOptions{}) {
			listed++
		}
		if listed != 3 {
			t.Errorf("got %d runs, want 3", listed)
		}
	})
}
