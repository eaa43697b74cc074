package dispatch

import (
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/broker/partition/watermark"
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
	// OfferPrefix follows [Host.Replies] in the subjects at which the owner is told of offers.
	OfferPrefix   = "o"
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
func (d *Dispatch) offer(
	r *actor.Run, a *execution.Activity, body []byte, t *watermark.Completion,
) bool {
	s := a.Scheduled
	if d.offers.policy.isAway(s.List) {
		return false
	}
	return d.SendOffer(r, a, t, func(f *actor.Offer) error {
		return d.Env.Conn.PublishReply(d.Env.NS.Offer(s.List), d.OfferReply(f), nil, body)
	})
}

// offerable tells whether an activity's task is one that may be offered now.
func (d *Dispatch) offerable(a *execution.Activity) bool {
	s := a.Scheduled
	return d.offers.policy.isQuick(s.ActivityType) && s.TaskPriority == 0 && a.Started == 0 &&
		!d.host.Leaving() && d.host.CanWrite()
}

// OfferReply is the subject at which an offer is refused.
func (d *Dispatch) OfferReply(f *actor.Offer) string {
	return d.host.Replies() + OfferPrefix + "." + strconv.FormatUint(f.ID, 36)
}

// OpenOffers returns the offers that are not over, in the order of their ends.
func (d *Dispatch) OpenOffers() []*actor.Offer {
	return slices.DeleteFunc(slices.Clone(d.offers.queue), (*actor.Offer).Over)
}

// HasOffers tells whether an offer is not over.
func (d *Dispatch) HasOffers() bool { return len(d.offers.open) > 0 }

// Took notes how long a task of an activity type took; 0 is not known.
func (d *Dispatch) Took(typ string, took schemas.Duration) { d.offers.policy.took(typ, took) }

// SendOffer notes an offer that send has sent.
func (d *Dispatch) SendOffer(
	r *actor.Run, a *execution.Activity, t *watermark.Completion, send func(*actor.Offer) error,
) bool {
	o := &d.offers
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
		d.Loop.After(offerPatience, d.expireOffers)
	}
	d.host.ScheduleProbes(deciders.ProbeAfter)
	return true
}

// OffersMet ends the offers of a run whose outcomes are in the history. Everything of the run is
// committed.
func (d *Dispatch) OffersMet(r *actor.Run) {
	for _, f := range slices.Backward(r.Tasks.Offers) { // EndOffer moves those after f
		if !f.Wanted() {
			d.EndOffer(f)
		}
	}
}

// EndOffer forgets an offer, and releases what it has held.
func (d *Dispatch) EndOffer(f *actor.Offer) {
	if f.Over() {
		return
	}
	delete(d.offers.open, f.ID)
	i := slices.Index(f.Run.Tasks.Offers, f)
	f.Run.Tasks.Offers = slices.Delete(f.Run.Tasks.Offers, i, i+1)
	if len(f.Run.Tasks.Offers) == 0 {
		f.Run.Tasks.Offers = nil
	}
	f.Completion.Release()
	f.Run, f.Activity, f.Ahead = nil, nil, nil
}

// Refused: nobody has taken the offer.
func (d *Dispatch) Refused(id uint64, nobody bool) {
	f := d.offers.open[id]
	if f == nil {
		return
	}
	if f.Ahead != nil {
		d.host.RefusedAhead(f, nobody)
		return
	}
	d.offers.policy.refused(f.Activity.Scheduled.List, nobody)
	d.StoreOffer(f, false)
}

// StoreOffer puts the task of an offer on its list, unless its outcome has come or its announcement
// has done so.
func (d *Dispatch) StoreOffer(f *actor.Offer, ask bool) {
	if f.EndIsComing() {
		return
	}
	if a := f.Activity; f.Wanted() && f.Run.Open() && !f.Stored && (a.Started == 0 || a.Offered) {
		d.Task(f.Run, a, f.Completion, true, ask)
	}
	d.host.Mark(f.Run)
	d.EndOffer(f)
}

// StoreOffers puts every task on its list that is offered: the owner leaves.
func (d *Dispatch) StoreOffers() {
	for _, f := range d.offers.queue {
		if !f.Over() {
			d.StoreOffer(f, true)
		}
	}
	d.offers.queue = nil
}

// expireOffers puts the tasks on their lists that were offered too long ago.
func (d *Dispatch) expireOffers() {
	o := &d.offers
	now, n := time.Now(), 0
	for ; n < len(o.queue); n++ {
		f := o.queue[n]
		if !f.Over() {
			if f.Until.After(now) {
				break
			}
			d.offers.policy.wasSlow(f.Activity.Scheduled.ActivityType)
			d.StoreOffer(f, true)
		}
		o.queue[n] = nil
	}
	o.queue = o.queue[n:]
	if o.timed = len(o.queue) > 0; o.timed {
		d.Loop.After(o.queue[0].Until.Sub(now), d.expireOffers)
	}
}
