package cache

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A run is parked only if all is known that must be: which record is its last, and that no alarm stands of which nothing is known. Of an
// alarm that is ringing nothing is kept, since its worker deletes it.
func TestWhatIsKeptOfAnAlarm(t *testing.T) { // P-10, I15
	for _, tc := range []struct {
		name   string
		change func(*actor.Run)
		alarm  uint64
		kept   bool
	}{
		{"armed", func(*actor.Run) {}, 7, true},
		{"ringing", func(r *actor.Run) { r.Alarm.Firing = true }, 0, true},
		{"strange", func(r *actor.Run) { r.Alarm.Strange = true }, 0, false},
		{"of a run without a record", func(r *actor.Run) { r.End.Sequence = 0 }, 0, false},
		{"of a run that has ended", func(r *actor.Run) { r.State.Status = schemas.StatusCompleted }, 0, false},
	} {
		lines := deadlines.New[*actor.Run]()
		c, r := New(fakeHost{}, env.Owner{}, &lines), sleeper()
		r.Alarm = actor.Alarm{Due: 100, Seq: 7}
		tc.change(r)
		c.passivate(r)
		back := &actor.Run{WorkflowID: r.WorkflowID}
		c.activate(back)
		if (back.Passive != nil) != tc.kept || tc.kept && back.Passive.Alarm != tc.alarm {
			t.Errorf("an alarm %s: kept %+v, want one: %v, with alarm %d", tc.name, back.Passive, tc.kept, tc.alarm)
		}
	}
}

// fakeHost is a partition that numbers no worker.
type fakeHost struct{ Host }

func (fakeHost) WorkerNumber(string) uint64 { return 0 }

func sleeper() *actor.Run {
	return &actor.Run{WorkflowID: "o", End: runs.End{Sequence: 40}, State: &execution.State{Run: "r2", Start: &schemas.WorkflowStarted{WorkflowType: "order"}, Status: schemas.StatusOpen}}
}
