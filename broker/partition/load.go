package partition

import (
	"context"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// get returns the actor of a workflow id; if there is none yet its latest run begins to load.
func (p *Partition) get(wid string) *actor.Run {
	r := p.runs[wid]
	if r == nil {
		r = &actor.Run{WorkflowID: wid}
		r.Load.Begin()
		p.runs[wid] = r
		p.touch(r)
		p.activate(r)
		p.load(r)
		return r
	}
	p.touch(r)
	return r
}

// when runs f once the run is loaded: at once, or later on the loop; not at all if it is set aside
// before that.
func (p *Partition) when(r *actor.Run, f func()) {
	switch {
	case r.Load.IsAside():
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Patient: true})
	default:
		f()
	}
}

func (p *Partition) load(r *actor.Run) {
	if r.Passive != nil && r.Passive.Complete {
		p.rehydrate(r)
		return
	}
	known, alone := r.Passive, p.singleReplica()
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*runs.Run, error) {
		if known != nil {
			return p.b.Histories.LoadKnown(ctx, p.n, r.WorkflowID, known.RunID, known.Sequence)
		}
		l, err := p.b.Histories.Latest(ctx, p.n, r.WorkflowID, alone)
		if err == nil && l != nil && l.State.Copying() {
			l.Unread, err = p.b.Histories.Unread(ctx, p.n, l.State, alone)
		}
		return l, err
	}, func(l *runs.Run, err error) {
		if err != nil {
			r.Passive = nil // the next try asks the leader
			p.unloaded(r, err)
			return
		}
		if p.isIntact(r) {
			p.ready(r, l)
		}
	})
}

// heartbeatsAnew lets the time for the next heartbeat begin: those of the last owner's time are not
// known. Of a parked run there were none, or it would have stayed in memory: it would never be late
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

// loadRun reads one run of a workflow id of the partition; nil if there is none.
func (p *Partition) loadRun(ctx context.Context, wid, id string) (*runs.Run, error) {
	return p.b.Histories.Load(ctx, p.n, wid, id, p.singleReplica())
}
