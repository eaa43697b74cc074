package alarms

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
	// AskCover is how long a run may wait for an answer to a decision task before an alarm makes a
	// new owner meet it.
	AskCover = schemas.Duration(10 * time.Second)
	// maxReask caps the alarm of a run that nobody listens for.
	maxReask = schemas.Duration(time.Minute)
)

// Wanted is the earliest instant at which somebody must look at the run, even if this owner is
// gone.
func (a *Alarms) Wanted(r *actor.Run) schemas.Timestamp {
	due := r.State.NextDue(a.Env.Config())
	w, wanted := r.State.WantsDecider(a.Env.Config())
	look := a.host.Now().Add(AskCover)
	switch {
	case r.Dispatching():
	case !wanted || w.Started:
		return due
	default:
		wait := min(AskCover<<min(r.Decider.Reasks, actor.ManyReasks), maxReask)
		if r.Decider.Asking.NoPoller() {
			wait = max(wait, a.host.BacklogApart())
		}
		look = max(w.NotBefore, a.host.Now().Add(wait))
	}
	if r.Alarm.Due != 0 && r.Alarm.Due <= look && r.Alarm.Due > a.host.Now() {
		look = r.Alarm.Due // armed already; do not chase the clock
	}
	if due == 0 {
		return look
	}
	return min(due, look)
}

// Cover releases what waits for the run to be safe: when it is closed or its alarm is armed early
// enough. Most runs end before their alarm would be made durable, and so never cost one; until then
// the effects position waits.
func (a *Alarms) Cover(r *actor.Run) {
	if r.Alarm.Way != nil || r.Load.Waits() {
		return
	}
	if !r.Open() {
		a.Uncover(r)
		a.ArmNever(r)
		if r.Live() {
			a.Drop(r)
		}
		a.host.Retire(r)
		return
	}
	if r.Inflight != nil || len(r.Pending) > 0 {
		return
	}
	due := a.Wanted(r)
	if due == 0 || r.Alarm.Due != 0 && r.Alarm.Due <= due {
		a.Uncover(r)
		return
	}
	if due.Sub(a.host.Now()) <= 2*a.Env.Options.AlarmDelay || a.host.Leaving() {
		a.arm(r, due)
		return
	}
	if !r.Alarm.Queued {
		a.armLater(r)
	}
}

// armNow arms what is still wanted when the delay is over.
func (a *Alarms) armNow(r *actor.Run) {
	if !r.Open() || r.Load.Waits() || r.Alarm.Way != nil {
		a.host.Mark(r)
		return
	}
	due := a.Wanted(r)
	if soon := a.host.Now().Add(AskCover); !r.IsSettled() && (due == 0 || due > soon) {
		// what is wanted may never be in the history, and who comes then must look at what is
		due = soon
	}
	if due != 0 && (r.Alarm.Due == 0 || r.Alarm.Due > due) {
		a.arm(r, due)
		return
	}
	a.host.Mark(r)
}

// Uncover releases what waited for the alarm.
func (a *Alarms) Uncover(r *actor.Run) {
	watermark.Release(r.Uncovered)
	r.Uncovered = nil
}

// arm publishes the alarm over the one that is known to be there (P-10). If another is there, the
// claim is looked at before it is replaced.
func (a *Alarms) arm(r *actor.Run, due schemas.Timestamp) {
	if !a.host.CanWrite() {
		return
	}
	id := r.State.Run
	natsconn.ExpectLastSubjectSeq(a.head, r.Alarm.Seq)
	a.record = schemas.Alarm{V: schemas.Version, Run: id, Due: due, Fence: a.host.Fence()}
	err := schemas.MarshalTo(&a.record, func(body []byte) error {
		way := &actor.SentAlarm{
			Run:     r,
			RunID:   id,
			Due:     due,
			Covered: r.Uncovered,
		} // only what waits now
		r.Uncovered, r.Alarm.Way = nil, way
		a.sending++
		a.host.Outside().Send(a.Env.NS.Alarm(a.Partition, r.WorkflowID, id), a.head, body,
			func(ack natsconn.Ack) {
				a.Loop.Post(func() { a.armed(way, ack) })
			})
		return nil
	})
	if err != nil {
		a.Log.WithError(err).Error("an alarm cannot be encoded")
	}
}

// armed learns what has become of an alarm that was published for a run.
func (a *Alarms) armed(way *actor.SentAlarm, ack natsconn.Ack) {
	r := way.Run
	a.sending--
	if ack.Err == nil {
		a.deadlines.Armed = max(a.deadlines.Armed, ack.Seq)
	}
	if r.State.Run != way.RunID { // another run has begun since; this one is closed
		a.DropStrange(r.WorkflowID, way.RunID)
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
	case ack.Err == nil && ack.Seq <= fired:
		// its ring has overtaken its acknowledgement: nothing is armed
		r.Alarm.Due, r.Alarm.Seq, r.Alarm.Firing = 0, 0, false
		r.Uncovered = append(covered, r.Uncovered...)
	case ack.Err == nil:
		r.Alarm.Due, r.Alarm.Seq, r.Alarm.Strange, r.Alarm.Firing = due, ack.Seq, false, false
		watermark.Release(covered)
	case errors.As(ack.Err, &other):
		r.Alarm.Seq, r.Alarm.Firing, r.Uncovered = other.Last, false, append(covered,
			r.Uncovered...)
	default:
		r.Uncovered = append(covered, r.Uncovered...)
		// if it is stored it has replaced what was armed, and may have rung since
		r.Alarm.Due, r.Alarm.Strange = 0, true
		a.Log.WithError(ack.Err).WithField("workflow", r.WorkflowID).
			Warn("an alarm is not acknowledged; arming again")
		r.Alarm.Queued = true
		a.Loop.After(env.EffectRetry, func() { r.Alarm.Queued = false; a.host.Mark(r) })
		return
	}
	a.host.Mark(r)
}

// fireWay is how a ring came: through the inbox, or straight to the owner.
type fireWay int

const (
	Stored fireWay = iota
	direct
)

// Fired: the alarm has rung, so nothing is armed any more (P-10). The ring's place in the inbox, or
// the worker's answer, is kept until the run is covered again. The worker deletes the message as
// soon as the ring is stored. One that came straight still stands there: the next alarm is
// published over it.
func (a *Alarms) Fired(r *actor.Run, fire *schemas.Ring, t *watermark.Completion, came fireWay) {
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
	a.host.Mark(r)
}

// Drop deletes the alarm of a closed run, by sequence only. If that fails it rings in vain.
func (a *Alarms) Drop(r *actor.Run) {
	known, strange := r.Alarm.Seq, r.Alarm.Strange
	if r.Alarm.Firing {
		known = 0
	}
	r.Alarm.Due, r.Alarm.Seq, r.Alarm.Strange, r.Alarm.Firing = 0, 0, false, false
	switch {
	case strange: // it may have replaced the one that is known
		a.DropStrange(r.WorkflowID, r.State.Run)
	case known != 0:
		a.Delete(known)
	}
}

// DropStrange looks for an alarm of a closed run that somebody else has armed, and deletes it: it
// may be due in a year.
func (a *Alarms) DropStrange(wid, id string) {
	env.ReadAsync(a.Env, a.Loop, func(ctx context.Context) (uint64, error) {
		m, err := a.Env.Reads.LastBySubject(ctx, a.Env.NS.StreamAlarms(a.Partition),
			a.Env.NS.Alarm(a.Partition, wid, id))
		if err != nil {
			return 0, err
		}
		return m.Seq, nil
	}, func(seq uint64, err error) {
		if err == nil {
			a.Delete(seq)
		}
	})
}

// Delete deletes the alarm of a closed run.
func (a *Alarms) Delete(seq uint64) {
	a.deadlines.Eraser.Add(seq)
	a.eraseSome()
}

func (a *Alarms) eraseSome() {
	for {
		seq, ok := a.deadlines.Eraser.Next(natsconn.DeletesAtOnce)
		if !ok {
			return
		}
		a.host.Outside().Delete(a.Env.NS.StreamAlarms(a.Partition), seq, func(err error) {
			a.Loop.Post(func() {
				a.deadlines.Eraser.Done()
				if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
					a.eraseAgain(seq)
				}
				a.eraseSome()
			})
		})
	}
}

// eraseAgain waits for an answer, and for the server if need be.
func (a *Alarms) eraseAgain(seq uint64) {
	if !a.host.CanWrite() { // the sequence may be another message's by now
		return
	}
	env.WriteAsync(a.Env, a.Loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, a.Env.Conn.DeleteMsg(ctx, a.Env.NS.StreamAlarms(a.Partition), seq)
	}, func(_ struct{}, err error) {
		if err != nil && !errors.Is(err, natsconn.ErrNotFound) {
			a.Log.WithError(err).Debug("an alarm of a closed run stays and will ring in vain")
		}
	})
}
