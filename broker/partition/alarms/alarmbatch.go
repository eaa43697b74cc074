package alarms

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deadlines"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// Alarms that are due come straight to the owner, many in one message (ADR 0022). The timer worker
// keeps each until the owner says that it is not needed any more: what it was for is in the
// history, and the run is covered again. Without an answer the worker puts the ring into the inbox.
// So nothing is stored for a ring that an owner is there to take, and an owner or a worker that
// dies with rings in hand costs their repetition.
//
// An answer without a record after it ("nothing is due") must not come from a broker that does not
// know yet that it is no longer the owner. The claim does not prove that: see P-16. But each alarm
// names the fence of the owner who armed it, and an owner relies on those alone that it has armed
// itself, or that were armed before it when it has not touched the run. So rings with a later fence
// than ours are refused; what a former owner says of its own alarms is still true in the history.

const (
	// firePatience is how far our clock may be after that of the worker who says that an alarm is
	// due.
	firePatience = time.Second
	// alarmBatchAnswer is how long outcomes of rings are gathered for one message.
	alarmBatchAnswer = 2 * time.Millisecond
)

// Take takes rings, on the connection's goroutine.
func (a *Alarms) Take(m natsconn.Msg) {
	q := &schemas.Rings{}
	err := schemas.Unmarshal(m.Data, q)
	if err != nil || !subject.Answerable(m.Reply) {
		a.Log.WithError(err).Debug("rings that cannot be read; they come by the inbox")
		a.answerAlarms(m.Reply, &schemas.RingsAnswer{Refused: true})
		return
	}
	answer := func(answer *schemas.RingsAnswer) { a.answerAlarms(m.Reply, answer) }
	a.Loop.Post(func() { a.takeAlarms(q, answer) })
}

func (a *Alarms) takeAlarms(q *schemas.Rings, answer func(*schemas.RingsAnswer)) {
	var latest schemas.Timestamp
	mine := a.host.CanWrite()
	for i := range q.Rings {
		r := &q.Rings[i]
		mine = mine && r.Fence != 0 && r.Fence <= a.host.Fence()
		latest = max(latest, r.Due)
	}
	// A ring counts by our corrected clock, which may be after that of the worker: never early
	// (P-15).
	wait := latest.Sub(a.host.Now())
	if mine && wait > firePatience {
		a.Env.DoubtClock()
	}
	if !mine || wait > firePatience {
		answer(&schemas.RingsAnswer{Refused: true})
		return
	}
	g := a.deadlines.Batches.Add(len(q.Rings), answer)
	if wait > 0 {
		a.Loop.After(wait, func() { a.fireAll(g, q.Rings) })
		return
	}
	a.fireAll(g, q.Rings)
}

// fireAll lets every ring happen.
func (a *Alarms) fireAll(g *deadlines.Batch, fires []schemas.DueRing) {
	at := a.host.Now()
	for i := range fires {
		q := &fires[i]
		t := watermark.New(func() { a.alarmDone(g, q.Sequence) })
		if a.host.NothingKnown(q.WorkflowID) {
			a.fireAbsent(q, t)
			continue
		}
		a.fire(q, at, t)
	}
}

// fire lets a ring happen.
func (a *Alarms) fire(q *schemas.DueRing, at schemas.Timestamp, t *watermark.Completion) {
	r := a.host.Get(q.WorkflowID)
	fire := schemas.Ring{Run: q.Run, Due: q.Due, Sequence: q.Sequence}
	a.host.When(r, func() { a.Fired(r, &fire, t, direct) })
	a.host.Deliver(r, &actor.Message{
		WorkflowID: q.WorkflowID, Event: execution.AlarmFired{}, At: at, Log: intake.None,
		Completion: t,
	})
}

// fireAbsent lets a ring happen for a workflow id of which nothing is in memory: mostly its run has
// closed, and the alarm is about to be deleted. After a backlog they are many. That the run has
// closed its last record says, and all of them need not be read.
func (a *Alarms) fireAbsent(q *schemas.DueRing, t *watermark.Completion) {
	a.host.ReadResult(&schemas.ExecutionRequest{WorkflowID: q.WorkflowID, Run: q.Run},
		func(any) { t.Release() }, func() { a.fire(q, a.host.Now(), t) })
}

// alarmDone: an alarm is not needed any more.
func (a *Alarms) alarmDone(g *deadlines.Batch, seq uint64) {
	switch g.Done(seq) {
	case deadlines.TellNow:
		a.tellAlarmBatch(g)
	case deadlines.TellLater:
		a.Loop.After(alarmBatchAnswer, func() { a.tellAlarmBatch(g) })
	case deadlines.TellAnyway:
	}
}

// tellAlarmBatch answers what is known by now.
func (a *Alarms) tellAlarmBatch(g *deadlines.Batch) {
	a.deadlines.Batches.Answer(g, a.host.Sealed())
}

// Refuse sends back the rings that this owner will not answer any more.
func (a *Alarms) Refuse() { a.deadlines.Batches.Refuse() }

func (a *Alarms) answerAlarms(to string, answer *schemas.RingsAnswer) {
	if !subject.Answerable(to) {
		return
	}
	answer.V = schemas.Version
	body, err := schemas.Marshal(answer)
	if err == nil {
		err = a.Env.Conn.Publish(to, nil, body)
	}
	if err != nil {
		a.Log.WithError(err).Debug(
			"a timer worker is not told what became of its rings; it puts them into the inbox")
	}
}
