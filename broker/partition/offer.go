package partition

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// A task that is over soon is not worth a message in a stream: it is offered to the idle workers of
// its list (ADR 0023). One of them takes it and sends its outcome, or refuses. The message is only
// the fallback:
//
//   - Refused, or nobody there: the task is put on its list, as ever.
//   - No outcome within offerPatience: the same, and whoever gets it must ask before it begins.
//   - The worker announces its start: the same, after that event. Who gets the message then asks,
//     and the worker with it (Inquire).
//   - The task must not run twice, and the worker asks before it begins (ADR 0058): an offer that
//     has begun is one whose start was announced, but for its message, which is stored when
//     offerPatience is over.
//
// An owner that dies forgets its offers. Their records are not after a checkpoint before their
// outcomes are in the history, so the next owner repeats the effect.
//
// Only what has no priority is offered, and what has been quick before: a slow task would cost an
// offer and a message.

const (
	offerPrefix   = "o"
	offerPatience = schemas.OfferPatience
	// mostOffers bounds what is offered at a time.
	mostOffers = 4096
)

// offers are those of a partition.
type offers struct {
	queue  []*actor.Offer // in the order of their ends
	open   map[uint64]*actor.Offer
	last   uint64
	timed  bool // expire is due
	policy offerPolicy
	asking map[string]bool // attempts whose workers are being asked, by token
}

// offer tells whether a task was offered. t is held until its outcome is in the history, or its
// message is stored.
func (p *Partition) offer(r *actor.Run, a *execution.Activity, body []byte, t *completion) bool {
	s := a.Scheduled
	if p.offers.policy.isAway(s.List) {
		return false
	}
	return p.sendOffer(r, a, t, func(f *actor.Offer) error {
		return p.b.Conn.PublishReply(p.b.NS.Offer(s.List), p.offerReply(f), nil, body)
	})
}

// offerable tells whether an activity's task is one that may be offered now.
func (p *Partition) offerable(a *execution.Activity) bool {
	s := a.Scheduled
	return p.offers.policy.isQuick(s.ActivityType) && s.TaskPriority == 0 && a.Started == 0 &&
		p.leaving == nil && p.canWrite()
}

func (p *Partition) offerReply(f *actor.Offer) string {
	return p.replies + offerPrefix + "." + strconv.FormatUint(f.ID, 36)
}

// sendOffer notes an offer that send has sent.
func (p *Partition) sendOffer(
	r *actor.Run, a *execution.Activity, t *completion, send func(*actor.Offer) error,
) bool {
	o := &p.offers
	for len(o.queue) > 0 && o.queue[0].Over() {
		o.queue[0] = nil
		o.queue = o.queue[1:]
	}
	if len(o.queue) >= mostOffers {
		return false
	}
	o.last++
	f := &actor.Offer{
		ID: o.last, Run: r, Activity: a, Attempt: a.Attempt, Completion: t,
		Until: time.Now().Add(offerPatience),
	}
	if send(f) != nil {
		return false
	}
	t.Retain()
	if o.open == nil {
		o.open = make(map[uint64]*actor.Offer)
	}
	o.open[f.ID] = f
	o.queue = append(o.queue, f)
	r.Tasks.Offers = append(r.Tasks.Offers, f)
	if !o.timed {
		o.timed = true
		p.loop.After(offerPatience, p.expireOffers)
	}
	p.scheduleProbes(deciders.ProbeAfter)
	return true
}

// offersMet ends the offers of a run whose outcomes are in the history. Everything of the run is
// committed.
func (p *Partition) offersMet(r *actor.Run) {
	for _, f := range slices.Backward(r.Tasks.Offers) { // endOffer moves those after f
		if !f.Wanted() {
			p.endOffer(f)
		}
	}
}

func (p *Partition) endOffer(f *actor.Offer) {
	if f.Over() {
		return
	}
	delete(p.offers.open, f.ID)
	i := slices.Index(f.Run.Tasks.Offers, f)
	if f.Run.Tasks.Offers = slices.Delete(f.Run.Tasks.Offers, i, i+1); len(f.Run.Tasks.Offers) ==
		0 {
		f.Run.Tasks.Offers = nil
	}
	f.Completion.Release()
	f.Run, f.Activity, f.Ahead = nil, nil, nil
}

// refused: nobody has taken the offer.
func (p *Partition) refused(id uint64, nobody bool) {
	f := p.offers.open[id]
	if f == nil {
		return
	}
	if f.Ahead != nil {
		p.refusedAhead(f, nobody)
		return
	}
	p.offers.policy.refused(f.Activity.Scheduled.List, nobody)
	p.storeOffer(f, false)
}

// storeOffer puts the task of an offer on its list, unless its outcome has come or its announcement
// has done so.
func (p *Partition) storeOffer(f *actor.Offer, ask bool) {
	if f.EndIsComing() {
		return
	}
	if a := f.Activity; f.Wanted() && f.Run.Open() && !f.Stored && (a.Started == 0 || a.Offered) {
		p.dispatch(f.Run, a, f.Completion, true, ask)
	}
	p.mark(f.Run)
	p.endOffer(f)
}

// storeOffers puts every task on its list that is offered: the owner leaves.
func (p *Partition) storeOffers() {
	for _, f := range p.offers.queue {
		if !f.Over() {
			p.storeOffer(f, true)
		}
	}
	p.offers.queue = nil
}

// expireOffers puts the tasks on their lists that were offered too long ago.
func (p *Partition) expireOffers() {
	o := &p.offers
	now, n := time.Now(), 0
	for ; n < len(o.queue); n++ {
		f := o.queue[n]
		if !f.Over() {
			if f.Until.After(now) {
				break
			}
			p.offers.policy.wasSlow(f.Activity.Scheduled.ActivityType)
			p.storeOffer(f, true)
		}
		o.queue[n] = nil
	}
	o.queue = o.queue[n:]
	if o.timed = len(o.queue) > 0; o.timed {
		p.loop.After(o.queue[0].Until.Sub(now), p.expireOffers)
	}
}

func (p *Partition) copied(r *actor.Run, c actor.TaskCopy) {
	r.Tasks.Copies = append(r.Tasks.Copies, c)
	if r.Inflight == nil && len(r.Pending) == 0 {
		p.dropCopies(r)
	}
}

// dropCopies deletes the messages of attempts that are over. Everything of the run is committed.
func (p *Partition) dropCopies(r *actor.Run) {
	r.Tasks.Copies = slices.DeleteFunc(r.Tasks.Copies, func(c actor.TaskCopy) bool {
		var a *execution.Activity
		if r.Live() && r.State.Run == c.Run {
			a = r.State.Activities[c.Scheduled]
		}
		switch {
		case a != nil && a.Attempt == c.Attempt && (a.Started == 0 || a.Offered):
			return false
		case a != nil && a.TaskSequence == c.Seq:
			return true // whoever was given it has begun with it: it is his now
		}
		// or it is dropped when it is delivered again
		p.outside.Delete(p.b.NS.StreamTasks(c.List), c.Seq, func(error) {})
		return true
	})
	if len(r.Tasks.Copies) == 0 {
		r.Tasks.Copies = nil
	}
}

const (
	// inquireTries is how often a worker is asked, and inquireWait how long each answer may take: a
	// worker that reconnects must have the time for it.
	inquireTries = 5
	inquireWait  = time.Second
)

// inquire asks a worker whether it is still at an attempt that came as an offer. It is asked again
// by whoever is given the task next, so an owner that dies meanwhile owes nothing.
func (p *Partition) inquire(r *actor.Run, f execution.Inquire) {
	o := &p.offers
	if o.asking[f.Token] {
		return
	}
	body, err := schemas.MarshalJSON(
		&schemas.Control{V: schemas.Version, Kind: schemas.ControlHolds, Token: f.Token})
	if err != nil {
		p.log.WithError(err).Error("a worker cannot be asked")
		return
	}
	if o.asking == nil {
		o.asking = make(map[string]bool)
	}
	o.asking[f.Token] = true
	wid, gone := r.WorkflowID,
		execution.Gone{Run: r.State.Run, ScheduledID: f.ScheduledID, Attempt: f.Attempt}
	p.b.Work.Go(func() {
		holds := workerHas(p.b, f.Worker, body)
		p.loop.Post(func() {
			delete(o.asking, f.Token)
			if holds || p.leaving != nil || !p.lease.Valid() {
				return
			}
			p.log.WithField("workflow", wid).WithField("worker", f.Worker).
				Warn("a worker does not answer for an activity that it was at; it is interrupted")
			p.deliver(p.get(wid),
				&actor.Message{WorkflowID: wid, Event: gone, At: p.now(), Log: noLog})
		})
	})
}

// workerHas asks a worker. Without a connection nobody is accused.
func workerHas(b *env.Env, worker string, question []byte) bool {
	for range inquireTries {
		ctx, cancel := context.WithTimeout(b.Background, inquireWait)
		began := time.Now()
		m, err := b.Conn.Request(ctx, b.NS.Control(worker), nil, question)
		cancel()
		var a schemas.ControlAnswer
		if b.Background.Err() != nil ||
			err == nil && schemas.Unmarshal(m.Data, &a) == nil && a.Holds {
			return true
		}
		if sleep.For(b.Background, inquireWait-time.Since(began)) != nil {
			return true
		}
	}
	return !b.Conn.NATS().IsConnected()
}
