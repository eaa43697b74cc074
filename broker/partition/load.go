package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// get returns the actor of a workflow id; if there is none yet its latest run begins to load.
func (p *Partition) get(wid string) *run {
	r := p.runs[wid]
	if r == nil {
		r = &run{wid: wid, loading: true}
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
func (p *Partition) when(r *run, f func()) {
	switch {
	case r.aside:
	case r.loading:
		r.then = append(r.then, awaited{run: f, patient: true})
	default:
		f()
	}
}

func (p *Partition) load(r *run) {
	if r.passive != nil && r.passive.Complete {
		p.rehydrate(r)
		return
	}
	known, alone := r.passive, p.singleReplica()
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (*runs.Run, error) {
		if known != nil {
			return p.b.Histories.LoadKnown(ctx, p.n, r.wid, known.RunID, known.Sequence)
		}
		l, err := p.b.Histories.Latest(ctx, p.n, r.wid, alone)
		if err == nil && l != nil && l.State.Copying() {
			l.Unread, err = p.b.Histories.Unread(ctx, p.n, l.State, alone)
		}
		return l, err
	}, func(l *runs.Run, err error) {
		if err != nil {
			r.passive = nil // the next try asks the leader
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

const loadRetry = 200 * time.Millisecond

func (p *Partition) ready(r *run, l *runs.Run) {
	r.loading = false
	if l != nil {
		r.state, r.window, r.windowFrom = l.State, l.Window, l.WindowFrom
		r.positions, r.end = l.Positions, l.End
		r.committed, r.loaded = l.State.LastID, l.State.LastID
		if r.alarm.strange = r.passive == nil; r.passive == nil {
			heartbeatsAnew(l.State, p.now())
		} else {
			r.alarm.due, r.alarm.seq = r.passive.Due, r.passive.Alarm
			r.state.Dispatched(r.passive.Waits)
			p.remember(r, r.passive.Worker)
			r.passive = nil
		}
	}
	p.rejoinBacklog(r)
	p.inheritAsk(r)
	switch { // its owner is gone: before anything else, what it had promised (P-4)
	case r.continues():
		if p.continueAs(r); r.loading {
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
