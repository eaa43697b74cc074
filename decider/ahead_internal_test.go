package decider

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/schemas"
)

// errandTask is a decision task after an activity that event 5 has scheduled.
func errandTask() *schemas.DecisionTask {
	return &schemas.DecisionTask{
		WorkflowID: "w", Run: "r", Type: "order", Token: "t", PreviousStartedID: 3, StartedID: 9,
		Events: []schemas.Event{
			{ID: 4, Time: 100, Attributes: &schemas.DeciderCompleted{}},
			{ID: 5, Time: 100, Attributes: &schemas.ActivityScheduled{ActivityID: "a", Input: schemas.Payload("1")}},
		},
		Ahead: &schemas.AheadTask{Task: schemas.ActivityTask{ScheduledEventID: 5, Attempt: 2}, At: 100, Scheduled: schemas.DeciderScheduled{Attempt: 1}},
	}
}

func opened(t *testing.T, dt *schemas.DecisionTask) (*localTask, error) {
	t.Helper()
	body, err := schemas.Marshal(dt)
	if err != nil {
		t.Fatal(err)
	}
	e := &localTask{s: &session{}, a: &ask{typ: "order"}}
	e.a.msg.Data, e.a.msg.Reply = body, "reply"
	task, _, err := e.Open()
	if err == nil && (string(task.Input) != "1" || task.Attempt != dt.Ahead.Task.Attempt) {
		t.Errorf("got task %+v", task)
	}
	return e, err
}

// An errand is opened only if what the decider will see is whole.
func TestOpenErrand(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*schemas.DecisionTask)
		want   string // of the error; empty for none
	}{
		"as it should be":      {func(*schemas.DecisionTask) {}, ""},
		"nothing ahead":        {func(dt *schemas.DecisionTask) { dt.Ahead = nil }, "ahead is missing"},
		"a replay":             {func(dt *schemas.DecisionTask) { dt.Replay = &schemas.ReplayQuestion{} }, "the window ends at event"},
		"an empty window":      {func(dt *schemas.DecisionTask) { dt.Events = nil }, "the window ends at event 3, want 5"},
		"a window with a gap":  {func(dt *schemas.DecisionTask) { dt.Events[0].ID = 3 }, "the window ends at event 3, want 5"},
		"a window with more":   {func(dt *schemas.DecisionTask) { dt.More = true }, "the window ends at event 5, want 5"},
		"too far ahead":        {func(dt *schemas.DecisionTask) { dt.StartedID = 10 }, "the window ends at event 5, want 6"},
		"not ahead":            {func(dt *schemas.DecisionTask) { dt.StartedID = 6 }, "the window ends at event 5, want 2"},
		"without the activity": {func(dt *schemas.DecisionTask) { dt.Ahead.Task.ScheduledEventID = 2 }, "with event 2"},
		"a negative activity":  {func(dt *schemas.DecisionTask) { dt.Ahead.Task.ScheduledEventID = math.MinInt64 }, "with event -9223372036854775808"},
		"no activity":          {func(dt *schemas.DecisionTask) { dt.Ahead.Task.ScheduledEventID = 4 }, "event 4 is DeciderCompleted, want ActivityScheduled"},
		"another type":         {func(dt *schemas.DecisionTask) { dt.Type = "other" }, `type is "other" on the subject of type "order"`},
		"no token":             {func(dt *schemas.DecisionTask) { dt.Token = "" }, "token is empty"},
		"an absurd number":     {func(dt *schemas.DecisionTask) { dt.StartedID = math.MinInt64 }, "want 0 ≤ previousStartedId < startedId"},
	} {
		t.Run(name, func(t *testing.T) {
			dt := errandTask()
			c.change(dt)
			switch _, err := opened(t, dt); {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (!errors.Is(err, ErrInvalidTask) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// The times are those that the owner will write: never after the last event, whatever the clocks and the worker say.
func TestForeseen(t *testing.T) {
	for name, c := range map[string]struct {
		at, elapsed   int64
		started, rest schemas.Timestamp
	}{
		"some time later":       {at: 500, elapsed: 300, started: 200, rest: 500},
		"longer than it is old": {at: 500, elapsed: 450, started: 100, rest: 500},
		"absurdly long":         {at: 500, elapsed: math.MaxInt64, started: 100, rest: 500},
		"not said":              {at: 500, started: 500, rest: 500},
		"without a limit":       {at: 500, elapsed: -1, started: 500, rest: 500},
		"after the last event":  {at: 50, elapsed: 10, started: 100, rest: 100},
		"before all time":       {at: math.MinInt64 / 2, elapsed: 10, started: 100, rest: 100},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := opened(t, errandTask())
			if err != nil {
				t.Fatal(err)
			}
			result := []byte("42")
			r := &schemas.Report{Kind: schemas.ReportSuccess, Result: result, Identity: "me", Nonce: "n", TaskSequence: 7, Elapsed: schemas.Duration(c.elapsed)}
			dt := &e.o.t.task
			got := foreseen(dt, r, schemas.Timestamp(c.at))
			copy(result, "XX") // it belongs to the function that returned it
			want := []schemas.Event{
				{ID: 6, Time: c.started, Attributes: &schemas.ActivityStarted{ScheduledEventID: 5, Attempt: 2, Identity: "me", Nonce: "n", TaskSequence: 7}},
				{ID: 7, Time: c.rest, Attributes: &schemas.ActivitySuccess{ScheduledEventID: 5, StartedEventID: 6, Result: schemas.Payload("42")}},
				{ID: 8, Time: c.rest, Attributes: &schemas.DeciderScheduled{Attempt: 1}},
				{ID: 9, Time: c.rest, Attributes: &schemas.DeciderStarted{ScheduledEventID: 8}},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if s, _ := got[2].Attributes.(*schemas.DeciderScheduled); s == &dt.Ahead.Scheduled {
				t.Error("the events hold the whole task in memory")
			}
		})
	}
}

// No body brings the worker down, and what it opens leads to a whole window.
func FuzzErrand(f *testing.F) {
	for _, change := range []func(*schemas.DecisionTask){
		func(*schemas.DecisionTask) {},
		func(dt *schemas.DecisionTask) { dt.Ahead = nil },
		func(dt *schemas.DecisionTask) { dt.Events = nil },
		func(dt *schemas.DecisionTask) { dt.Ahead.At = math.MaxInt64 },
		func(dt *schemas.DecisionTask) { dt.Ahead.Task.ScheduledEventID = -1 },
	} {
		dt := errandTask()
		change(dt)
		packed, err := schemas.Marshal(dt)
		if err != nil {
			f.Fatal(err)
		}
		plain, err := schemas.MarshalJSON(dt)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed)
		f.Add(plain)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e := &localTask{s: &session{}, a: &ask{typ: "order"}}
		e.a.msg.Data, e.a.msg.Reply = body, "reply"
		task, decide, err := e.Open()
		if err != nil {
			return
		}
		if task == nil || decide == nil {
			t.Fatal("an errand without a task")
		}
		dt := &e.o.t.task
		dt.Events = append(slices.Clip(dt.Events), foreseen(dt, &schemas.Report{Kind: schemas.ReportSuccess, Elapsed: 1}, dt.Ahead.At)...)
		if history.WindowEnd(dt) != dt.StartedID || int64(len(dt.Events)) != dt.StartedID-dt.PreviousStartedID {
			t.Fatalf("%d events from %d on end at %d, want %d", len(dt.Events), dt.PreviousStartedID, history.WindowEnd(dt), dt.StartedID)
		}
		for i, ev := range dt.Events[len(dt.Events)-schemas.AheadEvents:] {
			if before := dt.Events[len(dt.Events)-schemas.AheadEvents+i-1]; ev.Time < before.Time || ev.ID != before.ID+1 {
				t.Fatalf("event %d at %d after event %d at %d", ev.ID, ev.Time, before.ID, before.Time)
			}
		}
	})
}
