package partition

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

const (
	// askCover is how long a run may wait for an answer to a decision task before an alarm makes a
	// new owner meet it.
	askCover = schemas.Duration(10 * time.Second)
	// maxReask caps the alarm of a run that nobody listens for.
	maxReask = schemas.Duration(time.Minute)
	// manyReasks is after how many questions in vain it is at that cap, at least.
	manyReasks = 8
)

// wantedAlarm is the earliest instant at which somebody must look at the run, even if this owner is
// gone.
func (p *Partition) wantedAlarm(r *run) schemas.Timestamp {
	due := r.state.NextDue(p.b.Config())
	w, wanted := r.state.WantsDecider(p.b.Config())
	look := p.now().Add(askCover)
	switch {
	case r.dispatching():
	case !wanted || w.Started:
		return due
	default:
		wait := min(askCover<<min(r.reasks, manyReasks), maxReask)
		if r.noPoller {
			wait = max(wait, p.deciders.Backlog.Apart())
		}
		look = max(w.NotBefore, p.now().Add(wait))
	}
	if r.alarm.due != 0 && r.alarm.due <= look && r.alarm.due > p.now() {
		look = r.alarm.due // armed already; do not chase the clock
	}
	if due == 0 {
		return look
	}
	return min(due, look)
}

// cover releases what waits for the run to be safe: when it is closed or its alarm is armed early
// enough. Most runs end before their alarm would be made durable, and so never cost one; until then
// the effects position waits.
func (p *Partition) cover(r *run) {
	if r.alarm.way != nil || r.loading {
		return
	}
	if !r.open() {
		p.uncover(r)
		p.armNever(r)
		if r.live() {
			p.dropAlarm(r)
		}
		p.retire(r)
		return
	}
	if r.inflight != nil || len(r.pending) > 0 {
		return
	}
	due := p.wantedAlarm(r)
	if due == 0 || r.alarm.due != 0 && r.alarm.due <= due {
		p.uncover(r)
		return
	}
	if due.Sub(p.now()) <= 2*p.b.Options.AlarmDelay || p.leaving != nil {
		p.arm(r, due)
		return
	}
	if !r.alarm.queued {
		p.armLater(r)
	}
}

// armNow arms what is still wanted when the delay is over.
func (p *Partition) armNow(r *run) {
	if !r.open() || r.loading || r.alarm.way != nil {
		p.mark(r)
		return
	}
	due := p.wantedAlarm(r)
	if soon := p.now().Add(askCover); !r.isSettled() && (due == 0 || due > soon) {
		// what is wanted may never be in the history, and who comes then must look at what is
		due = soon
	}
	if due != 0 && (r.alarm.due == 0 || r.alarm.due > due) {
		p.arm(r, due)
		return
	}
	p.mark(r)
}

// uncover releases what waited for the alarm.
func (p *Partition) uncover(r *run) {
	watermark.Release(r.uncovered)
	r.uncovered = nil
}

// arm publishes the alarm over the one that is known to be there (P-10). If another is there, the
// claim is looked at before it is replaced.
func (p *Partition) arm(r *run, due schemas.Timestamp) {
	if !p.canWrite() {
		return
	}
	id := r.state.Run
	natsconn.ExpectLastSubjectSeq(p.scratch.alarmHead, r.alarm.seq)
	p.scratch.alarm = schemas.Alarm{V: schemas.Version, Run: id, Due: due, Fence: p.fence}
	err := schemas.MarshalTo(&p.scratch.alarm, func(body []byte) error {
		way := &sentAlarm{run: r, id: id, due: due, covered: r.uncovered} // only what waits now
		r.uncovered, r.alarm.way = nil, way
		p.sends++
		p.outside.Send(p.b.NS.Alarm(p.n, r.wid, id), p.scratch.alarmHead, body,
			func(a natsconn.Ack) {
				p.loop.Post(func() { p.armed(way, a) })
			})
		return nil
	})
	if err != nil {
		p.log.WithError(err).Error("an alarm cannot be encoded")
	}
}

// armed learns what has become of an alarm that was published for a run.
func (p *Partition) armed(way *sentAlarm, a natsconn.Ack) {
	r := way.run
	p.sends--
	if a.Err == nil {
		p.deadlines.Armed = max(p.deadlines.Armed, a.Seq)
	}
	if r.state.Run != way.id { // another run has begun since; this one is closed
		p.dropStrange(r.wid, way.id)
		watermark.Release(way.covered)
		return
	}
	if r.alarm.way != way { // its ring was here before
		return
	}
	fired := r.alarm.fired
	r.alarm.way, r.alarm.fired = nil, 0
	due, covered := way.due, way.covered
	var other *natsconn.SequenceError
	switch {
	case a.Err == nil && a.Seq <= fired:
		// its ring has overtaken its acknowledgement: nothing is armed
		r.alarm.due, r.alarm.seq, r.alarm.firing = 0, 0, false
		r.uncovered = append(covered, r.uncovered...)
	case a.Err == nil:
		r.alarm.due, r.alarm.seq, r.alarm.strange, r.alarm.firing = due, a.Seq, false, false
		watermark.Release(covered)
	case errors.As(a.Err, &other):
		r.alarm.seq, r.alarm.firing, r.uncovered = other.Last, false, append(covered,
			r.uncovered...)
	default:
		r.uncovered = append(covered, r.uncovered...)
		// if it is stored it has replaced what was armed, and may have rung since
		r.alarm.due, r.alarm.strange = 0, true
		p.log.WithError(a.Err).WithField("workflow", r.wid).
			Warn("an alarm is not acknowledged; arming again")
		r.alarm.queued = true
		p.loop.After(effectRetry, func() { r.alarm.queued = false; p.mark(r) })
		return
	}
	p.mark(r)
}

// fireWay is how a ring came: through the inbox, or straight to the owner.
type fireWay int

const (
	stored fireWay = iota
	direct
)

// fired: the alarm has rung, so nothing is armed any more (P-10). The ring's place in the inbox, or
// the worker's answer, is kept until the run is covered again. The worker deletes the message as
// soon as the ring is stored. One that came straight still stands there: the next alarm is
// published over it.
func (p *Partition) fired(r *run, fire *schemas.Ring, t *completion, came fireWay) {
	if !r.open() || fire.Run != r.state.Run {
		return
	}
	switch way := r.alarm.way; {
	case way == nil:
	case fire.Due == way.due && fire.Sequence > r.alarm.seq:
		// it is stored, whatever becomes of its acknowledgement
		r.uncovered = append(r.uncovered, way.covered...)
		r.alarm.way, r.alarm.fired, way.covered = nil, 0, nil
	default:
		r.alarm.fired = max(r.alarm.fired, fire.Sequence)
	}
	if fire.Sequence >= r.alarm.seq || r.alarm.seq == 0 || fire.Due == r.alarm.due {
		r.alarm.due, r.alarm.seq, r.alarm.firing = 0, 0, came == direct
		if came == direct {
			r.alarm.seq = fire.Sequence
		}
	}
	t.Retain()
	r.uncovered = append(r.uncovered, t)
	p.mark(r)
}

// dropAlarm deletes the alarm of a closed run, by sequence only. If that fails it rings in vain.
func (p *Partition) dropAlarm(r *run) {
	known, strange := r.alarm.seq, r.alarm.strange
	if r.alarm.firing {
		known = 0
	}
	r.alarm.due, r.alarm.seq, r.alarm.strange, r.alarm.firing = 0, 0, false, false
	switch {
	case strange: // it may have replaced the one that is known
		p.dropStrange(r.wid, r.state.Run)
	case known != 0:
		p.deleteAlarm(known)
	}
}

// dropStrange looks for an alarm of a closed run that somebody else has armed, and deletes it: it
// may be due in a year.
func (p *Partition) dropStrange(wid, id string) {
	env.ReadAsync(p.b, p.loop, func(ctx context.Context) (uint64, error) {
		m, err := p.b.Reads.LastBySubject(ctx, p.b.NS.StreamAlarms(p.n), p.b.NS.Alarm(p.n, wid, id))
		if err != nil {
			return 0, err
		}
		return m.Seq, nil
	}, func(seq uint64, err error) {
		if err == nil {
			p.deleteAlarm(seq)
		}
	})
}

// deleteAlarm deletes the alarm of a closed run.
func (p *Partition) deleteAlarm(seq uint64) {
	p.deadlines.Eraser.Add(seq)
	p.eraseSome()
}

func (p *Partition) eraseSome() {
	for {
		seq, ok := p.deadlines.Eraser.Next(natsconn.DeletesAtOnce)
		if !ok {
			return
		}
		p.outside.Delete(p.b.NS.StreamAlarms(p.n), seq, func(err error) {
			p.loop.Post(func() {
				p.deadlines.Eraser.Done()
				if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
					p.eraseAgain(seq)
				}
				p.eraseSome()
			})
		})
	}
}

// eraseAgain waits for an answer, and for the server if need be.
func (p *Partition) eraseAgain(seq uint64) {
	if !p.canWrite() { // the sequence may be another message's by now
		return
	}
	env.WriteAsync(p.b, p.loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.b.Conn.DeleteMsg(ctx, p.b.NS.StreamAlarms(p.n), seq)
	}, func(_ struct{}, err error) {
		if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
			p.log.WithError(err).Debug("an alarm of a closed run stays and will ring in vain")
		}
	})
}
