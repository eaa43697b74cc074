package partition

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
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
func (p *Partition) wantedAlarm(r *actor.Run) schemas.Timestamp {
	due := r.State.NextDue(p.b.Config())
	w, wanted := r.State.WantsDecider(p.b.Config())
	look := p.now().Add(askCover)
	switch {
	case r.Dispatching():
	case !wanted || w.Started:
		return due
	default:
		wait := min(askCover<<min(r.Decider.Reasks, manyReasks), maxReask)
		if r.Decider.NoPoller {
			wait = max(wait, p.deciders.Backlog.Apart())
		}
		look = max(w.NotBefore, p.now().Add(wait))
	}
	if r.Alarm.Due != 0 && r.Alarm.Due <= look && r.Alarm.Due > p.now() {
		look = r.Alarm.Due // armed already; do not chase the clock
	}
	if due == 0 {
		return look
	}
	return min(due, look)
}

// cover releases what waits for the run to be safe: when it is closed or its alarm is armed early
// enough. Most runs end before their alarm would be made durable, and so never cost one; until then
// the effects position waits.
func (p *Partition) cover(r *actor.Run) {
	if r.Alarm.Way != nil || r.Loading {
		return
	}
	if !r.Open() {
		p.uncover(r)
		p.armNever(r)
		if r.Live() {
			p.dropAlarm(r)
		}
		p.retire(r)
		return
	}
	if r.Inflight != nil || len(r.Pending) > 0 {
		return
	}
	due := p.wantedAlarm(r)
	if due == 0 || r.Alarm.Due != 0 && r.Alarm.Due <= due {
		p.uncover(r)
		return
	}
	if due.Sub(p.now()) <= 2*p.b.Options.AlarmDelay || p.leaving != nil {
		p.arm(r, due)
		return
	}
	if !r.Alarm.Queued {
		p.armLater(r)
	}
}

// armNow arms what is still wanted when the delay is over.
func (p *Partition) armNow(r *actor.Run) {
	if !r.Open() || r.Loading || r.Alarm.Way != nil {
		p.mark(r)
		return
	}
	due := p.wantedAlarm(r)
	if soon := p.now().Add(askCover); !r.IsSettled() && (due == 0 || due > soon) {
		// what is wanted may never be in the history, and who comes then must look at what is
		due = soon
	}
	if due != 0 && (r.Alarm.Due == 0 || r.Alarm.Due > due) {
		p.arm(r, due)
		return
	}
	p.mark(r)
}

// uncover releases what waited for the alarm.
func (p *Partition) uncover(r *actor.Run) {
	watermark.Release(r.Uncovered)
	r.Uncovered = nil
}

// arm publishes the alarm over the one that is known to be there (P-10). If another is there, the
// claim is looked at before it is replaced.
func (p *Partition) arm(r *actor.Run, due schemas.Timestamp) {
	if !p.canWrite() {
		return
	}
	id := r.State.Run
	natsconn.ExpectLastSubjectSeq(p.scratch.alarmHead, r.Alarm.Seq)
	p.scratch.alarm = schemas.Alarm{V: schemas.Version, Run: id, Due: due, Fence: p.fence}
	err := schemas.MarshalTo(&p.scratch.alarm, func(body []byte) error {
		way := &actor.SentAlarm{
			Run:     r,
			RunID:   id,
			Due:     due,
			Covered: r.Uncovered,
		} // only what waits now
		r.Uncovered, r.Alarm.Way = nil, way
		p.sends++
		p.outside.Send(p.b.NS.Alarm(p.n, r.WorkflowID, id), p.scratch.alarmHead, body,
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
func (p *Partition) armed(way *actor.SentAlarm, a natsconn.Ack) {
	r := way.Run
	p.sends--
	if a.Err == nil {
		p.deadlines.Armed = max(p.deadlines.Armed, a.Seq)
	}
	if r.State.Run != way.RunID { // another run has begun since; this one is closed
		p.dropStrange(r.WorkflowID, way.RunID)
		watermark.Release(way.Covered)
		return
	}
	if r.Alarm.Way != way { // its ring was here before
		return
	}
	fired := r.Alarm.Fired
	r.Alarm.Way, r.Alarm.Fired = nil, 0
	due, covered := way.Due, way.Covered
	var other *natsconn.SequenceError
	switch {
	case a.Err == nil && a.Seq <= fired:
		// its ring has overtaken its acknowledgement: nothing is armed
		r.Alarm.Due, r.Alarm.Seq, r.Alarm.Firing = 0, 0, false
		r.Uncovered = append(covered, r.Uncovered...)
	case a.Err == nil:
		r.Alarm.Due, r.Alarm.Seq, r.Alarm.Strange, r.Alarm.Firing = due, a.Seq, false, false
		watermark.Release(covered)
	case errors.As(a.Err, &other):
		r.Alarm.Seq, r.Alarm.Firing, r.Uncovered = other.Last, false, append(covered,
			r.Uncovered...)
	default:
		r.Uncovered = append(covered, r.Uncovered...)
		// if it is stored it has replaced what was armed, and may have rung since
		r.Alarm.Due, r.Alarm.Strange = 0, true
		p.log.WithError(a.Err).WithField("workflow", r.WorkflowID).
			Warn("an alarm is not acknowledged; arming again")
		r.Alarm.Queued = true
		p.loop.After(env.EffectRetry, func() { r.Alarm.Queued = false; p.mark(r) })
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
func (p *Partition) fired(r *actor.Run, fire *schemas.Ring, t *completion, came fireWay) {
	if !r.Open() || fire.Run != r.State.Run {
		return
	}
	switch way := r.Alarm.Way; {
	case way == nil:
	case fire.Due == way.Due && fire.Sequence > r.Alarm.Seq:
		// it is stored, whatever becomes of its acknowledgement
		r.Uncovered = append(r.Uncovered, way.Covered...)
		r.Alarm.Way, r.Alarm.Fired, way.Covered = nil, 0, nil
	default:
		r.Alarm.Fired = max(r.Alarm.Fired, fire.Sequence)
	}
	if fire.Sequence >= r.Alarm.Seq || r.Alarm.Seq == 0 || fire.Due == r.Alarm.Due {
		r.Alarm.Due, r.Alarm.Seq, r.Alarm.Firing = 0, 0, came == direct
		if came == direct {
			r.Alarm.Seq = fire.Sequence
		}
	}
	t.Retain()
	r.Uncovered = append(r.Uncovered, t)
	p.mark(r)
}

// dropAlarm deletes the alarm of a closed run, by sequence only. If that fails it rings in vain.
func (p *Partition) dropAlarm(r *actor.Run) {
	known, strange := r.Alarm.Seq, r.Alarm.Strange
	if r.Alarm.Firing {
		known = 0
	}
	r.Alarm.Due, r.Alarm.Seq, r.Alarm.Strange, r.Alarm.Firing = 0, 0, false, false
	switch {
	case strange: // it may have replaced the one that is known
		p.dropStrange(r.WorkflowID, r.State.Run)
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
