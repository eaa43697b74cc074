package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// history numbers events.
func history(all ...schemas.Attributes) (events []schemas.Event) {
	for n, a := range all {
		events = append(events, schemas.Event{ID: int64(n + 1), Time: schemas.Timestamp(n + 1), Attributes: a})
	}
	return events
}

// decided is a history in which the first decision, at event 4, has caused a block of events.
func decided(block ...schemas.Attributes) []schemas.Event {
	return history(append([]schemas.Attributes{
		&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, &schemas.DeciderStarted{ScheduledEventID: 2},
		&schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 3},
	}, block...)...)
}

// replay replays a closed or open history with some code.
func replay(t *testing.T, events []schemas.Event, code func(m *machine.Machine)) error {
	t.Helper()
	m := machine.New(func(m *machine.Machine, _ *schemas.WorkflowStarted) func() schemas.Decision {
		code(m)
		return func() schemas.Decision { return decider.Complete(nil) }
	}, schemas.Execution{WorkflowID: "w", Run: "r"})
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, e := range events {
		if err := m.Add(e); err != nil {
			return err
		}
	}
	return m.Flush()
}

func call(m *machine.Machine, name string) {
	f := m.Schedule(m.Root(), &schemas.ScheduleActivity{ActivityType: name})
	m.Wait(name, f)
}

// Code that was changed without saying so is found, with both sides.
// sdk-go#1838, #876, #978, #983.
func TestCodeThatDiffers(t *testing.T) {
	ship := &schemas.ActivityScheduled{ActivityID: "ship#1", DeciderCompletedEventID: 4}
	for _, tc := range []struct {
		name string
		code func(m *machine.Machine)
		said string // nothing if it agrees
	}{
		{"the same", func(m *machine.Machine) { call(m, "ship") }, ""},
		{"another activity", func(m *machine.Machine) { call(m, "mail") }, "mail#1"},
		{"one more", func(m *machine.Machine) {
			m.Schedule(m.Root(), &schemas.ScheduleActivity{ActivityType: "mail"})
			call(m, "ship")
		}, "mail#1"},
		{"nothing", func(m *machine.Machine) {}, "ship#1"},
		{"a side effect before it", func(m *machine.Machine) {
			m.Once("rate", func() schemas.Payload { return nil })
			call(m, "ship")
		}, "rate#1"},
	} {
		err := replay(t, decided(ship), tc.code)
		mismatch, differs := errors.AsType[*machine.MismatchError](err)
		if tc.said == "" && err != nil || tc.said != "" && (!differs || mismatch.Event != 4 ||
			!strings.Contains(err.Error(), tc.said)) {
			t.Errorf("%s: %v, want it to say %q", tc.name, err, tc.said)
		}
	}
}

// A run that has come by before a change takes the old way, one that has its marker the new one,
// whatever became of it later. Once the old way is gone from the code, its marker may stay.
func TestChanges(t *testing.T) {
	old := func() []schemas.Event {
		return decided(&schemas.ActivityScheduled{ActivityID: "ship#1", DeciderCompletedEventID: 4})
	}
	marked := func() []schemas.Event {
		return decided(&schemas.Marker{MarkerName: "change c", DeciderCompletedEventID: 4},
			&schemas.ActivityScheduled{ActivityID: "mail#1", DeciderCompletedEventID: 4})
	}
	changed := func(m *machine.Machine) {
		if m.Changed("c") {
			call(m, "mail")
		} else {
			call(m, "ship")
		}
	}
	for _, tc := range []struct {
		name   string
		events []schemas.Event
		code   func(m *machine.Machine)
		agrees bool
	}{
		{"old run, changed code", old(), changed, true},
		{"new run, changed code", marked(), changed, true},
		{"new run, old way deleted", marked(), func(m *machine.Machine) { call(m, "mail") }, true},
		{"old run, old way deleted", old(), func(m *machine.Machine) { call(m, "mail") }, false},
		{"new run, old code", marked(), func(m *machine.Machine) { call(m, "ship") }, false},
	} {
		if err := replay(t, tc.events, tc.code); (err == nil) != tc.agrees {
			t.Errorf("%s: %v, want agreement: %v", tc.name, err, tc.agrees)
		}
	}
}

// ChangedFrom lets the next round of a loop take the new way, and no round that was before.
// sdk-go#1016.
func TestChangedFrom(t *testing.T) {
	events := decided(&schemas.ActivityScheduled{ActivityID: "old#1", DeciderCompletedEventID: 4})
	events = append(events, history(
		nil, nil, nil, nil, nil, &schemas.ActivitySuccess{ScheduledEventID: 5}, &schemas.DeciderScheduled{},
		&schemas.DeciderStarted{ScheduledEventID: 7}, &schemas.DeciderCompleted{ScheduledEventID: 7, StartedEventID: 8},
		&schemas.Marker{MarkerName: "change c", DeciderCompletedEventID: 9},
		&schemas.ActivityScheduled{ActivityID: "new#1", DeciderCompletedEventID: 9},
	)[5:]...)
	err := replay(t, events, func(m *machine.Machine) {
		for range 3 {
			if m.ChangedFrom("c") {
				call(m, "new")
			} else {
				call(m, "old")
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// A side effect is what the history has of it, and is not done again.
func TestOnceIsRecorded(t *testing.T) {
	events := decided(&schemas.Marker{MarkerName: "rate#1", Details: schemas.Payload("5"), DeciderCompletedEventID: 4},
		&schemas.WorkflowSuccess{DeciderCompletedEventID: 4})
	err := replay(t, events, func(m *machine.Machine) {
		p := m.Once("rate", func() schemas.Payload {
			t.Error("a replay has called the function")
			return nil
		})
		if string(p) != "5" {
			t.Errorf("got %s", p)
		}
	})
	if err != nil {
		t.Error(err)
	}
}

// cadence#402, sdk-go#378, #1176: a timer that has expired is not canceled by what comes with it, in
// either order.
func TestCancelMeetsAnExpiredTimer(t *testing.T) {
	expired, request := &schemas.TimerExpired{TimerID: "timer#1", ScheduledEventID: 5}, &schemas.WorkflowCancelRequested{}
	for _, both := range [][]schemas.Attributes{{expired, request}, {request, expired}} {
		m := machine.New(func(m *machine.Machine, _ *schemas.WorkflowStarted) func() schemas.Decision {
			f := m.Timer(m.Root(), schemas.At(m.Now()))
			m.Wait(f.Name, f)
			cleanup := m.Schedule(machine.NewScope(nil), &schemas.ScheduleActivity{ActivityType: "clean"})
			m.Wait(cleanup.Name, cleanup)
			return nil
		}, schemas.Execution{WorkflowID: "w", Run: "r"})
		events := decided(append([]schemas.Attributes{&schemas.TimerScheduled{TimerID: "timer#1", DeciderCompletedEventID: 4}}, both...)...)
		for _, e := range events {
			if err := m.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		all, _, err := m.Decide(machine.Live{Context: t.Context(), Started: 9, At: 9})
		if err != nil || len(all) != 1 || all[0].Type() != schemas.DecideScheduleActivity {
			t.Errorf("after %s: %v, %v, want the cleanup alone", both[0].EventType(), all, err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
