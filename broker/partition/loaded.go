package partition

import (
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// heartbeatsAnew lets the time for the next heartbeat begin: those of the last owner's time are not
// known. Of a passivated run there were none, or it would have stayed in memory: it would never be late
// if each reading gave it more time.
func heartbeatsAnew(s *execution.State, now schemas.Timestamp) {
	for _, a := range s.Activities {
		if a.Started != 0 && a.Scheduled.HeartbeatTimeout.Limited() {
			a.LastBeat = now
		}
	}
}

func (p *Partition) ready(r *actor.Run, l *runs.Run) {
	r.Load.End()
	if l != nil {
		r.State, r.Window.Events, r.Window.From = l.State, l.Window, l.WindowFrom
		r.Positions, r.End = l.Positions, l.End
		r.Committed, r.Loaded = l.State.LastID, l.State.LastID
		if r.Alarm.Strange = r.Passive == nil; r.Passive == nil {
			heartbeatsAnew(l.State, p.now())
		} else {
			r.Alarm.Due, r.Alarm.Seq = r.Passive.Due, r.Passive.Alarm
			r.State.Dispatched(r.Passive.Waits)
			p.decisions.Remember(r, r.Passive.Worker)
			r.Passive = nil
		}
	}
	p.decisions.RejoinBacklog(r)
	p.decisions.MeetInherited(r)
	switch { // its owner is gone: before anything else, what it had promised (P-4)
	case r.Continues():
		if p.continueAs(r); r.Load.Waits() {
			return
		}
	case l != nil:
		p.copySignals(r, l.Unread)
	}
	p.loadedNow(r)
}
