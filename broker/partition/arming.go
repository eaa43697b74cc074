package partition

import (
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
)

// armLater lets the run stand in the line of those whose alarm is made durable once AlarmDelay is
// over.
func (p *Partition) armLater(r *actor.Run) {
	place, alone := p.deadlines.Line.Enter(r, time.Now().Add(p.b.Options.AlarmDelay))
	if alone {
		p.loop.After(p.b.Options.AlarmDelay, p.armDelayed)
	}
	r.Alarm.Queued, r.Alarm.Place = true, place
}

// armNever takes a run that has closed out of the line.
func (p *Partition) armNever(r *actor.Run) {
	if r.Alarm.Place == 0 {
		return
	}
	p.deadlines.Line.Leave(r.Alarm.Place)
	r.Alarm.Queued, r.Alarm.Place = false, 0
}

// armDelayed arms those who have stood in line for long enough.
func (p *Partition) armDelayed() {
	now := time.Now()
	for r, ok := p.deadlines.Line.Next(now); ok; r, ok = p.deadlines.Line.Next(now) {
		r.Alarm.Queued, r.Alarm.Place = false, 0
		p.armNow(r)
	}
	if wait, ok := p.deadlines.Line.Wait(now); ok {
		p.loop.After(wait, p.armDelayed)
	}
}
