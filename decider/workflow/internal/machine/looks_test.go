package machine_test

import (
	"testing"

	"github.com/droverhq/drover/decider/workflow/internal/machine"
	"github.com/droverhq/drover/schemas"
)

// Code that takes what has come before it returns loses no signal: it finds those that came after
// what it has waited for, and those that came while it was about to return.
func TestLooksFindWhatHasCome(t *testing.T) {
	signal := func(text string) *schemas.Signal {
		return &schemas.Signal{SignalName: "s", Input: schemas.Payload(text)}
	}
	received := func(got *string, m *machine.Machine, c *machine.Channel) machine.Case {
		return machine.Case{On: c, Choose: func() {
			v, _ := c.Take()
			*got += string(v.(schemas.Payload)) + " at " + m.Now().Format("05.000000000") + ";"
		}}
	}
	together := history(&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, signal("a"), signal("b"),
		&schemas.DeciderStarted{ScheduledEventID: 2}, &schemas.DeciderCompleted{ScheduledEventID: 2, StartedEventID: 5},
		&schemas.WorkflowSuccess{DeciderCompletedEventID: 6})
	refused := history(&schemas.WorkflowStarted{}, &schemas.DeciderScheduled{}, signal("a"),
		&schemas.DeciderStarted{ScheduledEventID: 2}, signal("b"), &schemas.DeciderScheduled{},
		&schemas.DeciderFailed{ScheduledEventID: 2, StartedEventID: 4, Cause: schemas.CauseUnhandledDecision},
		&schemas.DeciderStarted{ScheduledEventID: 6}, &schemas.DeciderCompleted{ScheduledEventID: 6, StartedEventID: 8},
		&schemas.WorkflowSuccess{DeciderCompletedEventID: 9})
	for _, tc := range []struct {
		name   string
		events []schemas.Event
		rest   func(m *machine.Machine, c *machine.Channel, got *string)
		want   string
	}{
		{"TryReceive", together, func(m *machine.Machine, c *machine.Channel, got *string) {
			for c.ReadyNow() {
				received(got, m, c).Choose()
			}
		}, "a at 00.000000003;b at 00.000000003;"},
		{"Len, after a close that was refused", refused, func(m *machine.Machine, c *machine.Channel, got *string) {
			for c.Len() > 0 {
				received(got, m, c).Choose()
			}
		}, "a at 00.000000003;b at 00.000000003;"},
		{"Default", together, func(m *machine.Machine, c *machine.Channel, got *string) {
			for more := true; more; {
				_ = m.Select("a note", m.Root(), []machine.Case{received(got, m, c), {Choose: func() { more = false }}})
			}
		}, "a at 00.000000003;b at 00.000000003;"},
		{"a condition waits for the event", together, func(m *machine.Machine, c *machine.Channel, got *string) {
			_ = m.WaitFor(m.Root(), func() bool { return c.Len() > 0 })
			received(got, m, c).Choose()
		}, "a at 00.000000003;b at 00.000000004;"},
	} {
		got := ""
		err := replay(t, tc.events, func(m *machine.Machine) {
			c := m.Signals("s")
			_ = m.Select("a note", m.Root(), []machine.Case{received(&got, m, c)})
			tc.rest(m, c, &got)
		})
		if err != nil || got != tc.want {
			t.Errorf("%s: got %s (%v), want %s", tc.name, got, err, tc.want)
		}
	}
}
