package alarms

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

func anOpenRun() *actor.Run {
	return &actor.Run{WorkflowID: "o", End: runs.End{Sequence: 40}, State: &execution.State{Run: "r2", Start: &schemas.WorkflowStarted{WorkflowType: "order"}, Status: schemas.StatusOpen}}
}

// A ring tells that nothing is armed any more if it is that of the armed alarm, and nothing if it is an older one's, or another run's.
func TestWhatAFireTells(t *testing.T) { // P-10
	armed := actor.Alarm{Due: 100, Seq: 7}
	for _, tc := range []struct {
		name  string
		alarm actor.Alarm
		fire  schemas.Ring
		came  fireWay
		want  actor.Alarm
	}{
		{"of the armed one", armed, schemas.Ring{Run: "r2", Due: 100, Sequence: 7}, Stored, actor.Alarm{}},
		{"straight from its worker, which has it still", armed, schemas.Ring{Run: "r2", Due: 100, Sequence: 7}, direct, actor.Alarm{Seq: 7, Firing: true}},
		{"of one that replaced it", armed, schemas.Ring{Run: "r2", Due: 90, Sequence: 8}, Stored, actor.Alarm{}},
		{"of one that is not known", actor.Alarm{Due: 100}, schemas.Ring{Run: "r2", Due: 90, Sequence: 3}, Stored, actor.Alarm{}},
		{"of one that it has replaced", armed, schemas.Ring{Run: "r2", Due: 90, Sequence: 6}, Stored, armed},
		{"of the run before", armed, schemas.Ring{Run: "r1", Due: 100, Sequence: 7}, Stored, armed},
	} {
		done := false
		a, r, kept := New(&fakeHost{}, env.Owner{}, &deadlines.Deadlines[*actor.Run]{}), anOpenRun(), watermark.New(func() { done = true })
		r.Alarm = tc.alarm
		a.Fired(r, &tc.fire, kept, tc.came)
		if r.Alarm != tc.want {
			t.Errorf("a ring %s: got %+v, want %+v", tc.name, r.Alarm, tc.want)
		}
		kept.Release()
		if own := tc.fire.Run == "r2"; own == done || own != (len(r.Uncovered) == 1) {
			t.Errorf("a ring %s is held %v by %d; its place is kept until the run is covered, if it is the run's", tc.name, !done, len(r.Uncovered))
		}
	}
}

// While an alarm is on its way, its ring says that it was stored. That of the one which it replaces does not, though it may be due at the
// same time, and the acknowledgement counts then.
func TestFireWhileAnAlarmIsOnItsWay(t *testing.T) { // P-10
	for _, tc := range []struct {
		name string
		fire schemas.Ring
		ack  natsconn.Ack
		want actor.Alarm
		free bool // what waited for the alarm
	}{
		{"its own", schemas.Ring{Run: "r2", Due: 100, Sequence: 8}, natsconn.Ack{Seq: 8}, actor.Alarm{}, false},
		{"that of the one before", schemas.Ring{Run: "r2", Due: 90, Sequence: 7}, natsconn.Ack{Seq: 8}, actor.Alarm{Due: 100, Seq: 8}, true},
		{"that of the one before, for the same time", schemas.Ring{Run: "r2", Due: 100, Sequence: 7}, natsconn.Ack{Seq: 8}, actor.Alarm{Due: 100, Seq: 8}, true},
		{"one with its number", schemas.Ring{Run: "r2", Due: 90, Sequence: 8}, natsconn.Ack{Seq: 8}, actor.Alarm{}, false},
	} {
		free := false
		a, r, waits := New(&fakeHost{}, env.Owner{}, &deadlines.Deadlines[*actor.Run]{}), anOpenRun(), watermark.New(func() { free = true })
		way := &actor.SentAlarm{Run: r, RunID: "r2", Due: 100, Covered: []*watermark.Completion{waits}}
		r.Alarm = actor.Alarm{Due: 90, Seq: 7, Way: way}
		a.Fired(r, &tc.fire, watermark.New(nil), Stored)
		a.armed(way, tc.ack)
		if r.Alarm != tc.want || free != tc.free {
			t.Errorf("%s: got %+v, and what waited is free: %v; want %+v, free: %v", tc.name, r.Alarm, free, tc.want, tc.free)
		}
	}
}
