package alarms

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
)

// armLater lets the run stand in the line of those whose alarm is made durable once AlarmDelay is
// over.
func (a *Alarms) armLater(r *actor.Run) {
	place, alone := a.deadlines.Line.Enter(r, time.Now().Add(a.Env.Options.AlarmDelay))
	if alone {
		a.Loop.After(a.Env.Options.AlarmDelay, a.armDelayed)
	}
	r.Alarm.Queued, r.Alarm.Place = true, place
}

// ArmNever takes a run that has closed out of the line.
func (a *Alarms) ArmNever(r *actor.Run) {
	if r.Alarm.Place == 0 {
		return
	}
	a.deadlines.Line.Leave(r.Alarm.Place)
	r.Alarm.Queued, r.Alarm.Place = false, 0
}

// armDelayed arms those who have stood in line for long enough.
func (a *Alarms) armDelayed() {
	now := time.Now()
	for r, ok := a.deadlines.Line.Next(now); ok; r, ok = a.deadlines.Line.Next(now) {
		r.Alarm.Queued, r.Alarm.Place = false, 0
		a.armNow(r)
	}
	if wait, ok := a.deadlines.Line.Wait(now); ok {
		a.Loop.After(wait, a.armDelayed)
	}
}
