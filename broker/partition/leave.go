package partition

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/droverhq/drover/schemas"
)

// An owner that leaves as planned leaves nothing to repeat (ADR 0016):
//
//   - It takes nothing more from the logs and asks no decider. What it has begun comes to its end:
//     commits and their effects are acknowledged, alarms are armed, requests are answered. That
//     takes milliseconds, seconds where the machine is short of CPU, and is bounded by leaveLimit:
//     a record whose effects are open has the next owner repeat those of all that follow it.
//   - A decider may take much longer than that. If no other broker is there the owner waits for it.
//     Else its last checkpoint tells the next owner which decisions are being made and by which
//     token; this one stays, without the claim, to receive the answers and to pass them on.

const (
	// LeaveLimit bounds how long an owner that leaves lets writes come to their end.
	LeaveLimit = 5 * time.Second
	// leaveOffers is how long it waits for the outcomes of what it has offered, which is quick,
	// before it puts that on the lists. Whoever gets it there asks, and its question may be in the
	// inbox before the outcome.
	leaveOffers = time.Second / 2
	// leaveLook is how often it looks whether it may go.
	leaveLook = 20 * time.Millisecond
)

// errLeft ends the loop of an owner that has left and has nothing more to pass on.
var errLeft = errors.New("the partition is handed over")

// stage is how far an owner that leaves has come.
type stage uint8

const (
	settling       stage = iota + 1 // what was begun comes to its end
	announceClosed                  // the subscriptions for requests are being closed
	quiet                           // they are closed
	// nothing in memory changes any more; answers of deciders are passed on
	handed
)

// leaving is the planned end of a term.
type leaving struct {
	cause      error
	since      time.Time // nothing but writes is waited for since then
	began      time.Time
	stage      stage
	checkpoint schemas.Checkpoint // once handed
	passes     bool               // once handed: deciders are at work whose answers come here
}

// leave begins the planned end of the term.
func (p *Partition) leave(cause error) {
	if p.leaving != nil {
		return
	}
	if !p.lease.Valid() || !p.Env.Conn.NATS().IsConnected() {
		p.stop(cause)
		return
	}
	p.leaving = &leaving{cause: cause, since: time.Now(), began: time.Now(), stage: settling}
	for _, r := range p.inputs.readers {
		r.Close()
	}
	for r := range p.cache.All() {
		waiters := r.Waiters
		r.Waiters = nil
		for _, w := range waiters {
			w.Answer(r)
		}
		if r.Decider.Asking.Unconfirmed() {
			p.decisions.SendMarker(r.Decider.Ask)
		}
		if len(r.Uncovered) > 0 || r.Decider.Deferral.Waits() {
			p.mark(r)
		}
	}
	p.lookAgain()
}

func (p *Partition) lookAgain() { p.Loop.After(leaveLook, p.lookAgain) }

// sealed tells whether the partition is handed over: this owner writes nothing any more.
func (p *Partition) sealed() bool { return p.leaving != nil && p.leaving.stage == handed }

// part goes on with leaving. It is called after each batch of the loop.
func (p *Partition) part() {
	l := p.leaving
	switch l.stage {
	case settling:
		if p.decidersFirst() {
			l.since = time.Now()
			return
		}
		if p.dispatch.HasOffers() && time.Since(l.began) < leaveOffers {
			return
		}
		p.dispatch.StoreOffers()
		if p.settledAll() || p.outOfTime() {
			l.stage = announceClosed
			p.Env.Work.Go(func() {
				p.closeSubscriptions()
				p.Loop.Post(func() { l.stage = quiet })
			})
		}
	case quiet:
		if p.settledAll() && p.inputs.requests.none() || p.outOfTime() {
			p.seal()
		}
	case handed:
		p.decisions.GiveUp()
		if len(p.decisions.Asks) == 0 {
			p.stop(errLeft)
		}
	}
}

// decidersFirst tells whether deciders must answer before the owner may go: nobody else is there to
// take their answers.
func (p *Partition) decidersFirst() bool {
	if !p.Env.Share.Alone() || !p.Env.Conn.NATS().IsConnected() || !p.lease.Valid() ||
		time.Since(p.leaving.began) > p.Env.Options.DrainTimeout {
		return false
	}
	for _, r := range p.decisions.Asks {
		if !p.decisions.Overdue(r, 0) {
			return true
		}
	}
	return false
}

// outOfTime tells whether the owner goes whatever is open.
func (p *Partition) outOfTime() bool { return time.Since(p.leaving.since) > LeaveLimit }

// settledAll tells whether no write is on its way, and none is owed: an effect may wait for its
// task list to be made, or to be tried again.
func (p *Partition) settledAll() bool {
	if p.writer.Busy() || p.dispatch.Busy() || p.alarms.Busy() || p.keys.Busy() || p.large.Busy() ||
		p.owing > 0 || p.handover.Checkpointing || p.hasOwed() && !p.handover.Recovering() {
		// what was left to this one, the next one repeats
		return false
	}
	for _, r := range p.decisions.Asks {
		if r.Decider.Asking.Unconfirmed() {
			return false
		}
	}
	return true
}

// hasOwed tells whether effects of committed records are open.
func (p *Partition) hasOwed() bool {
	return p.intake.Effects.Position().Sequence < p.handover.Top.Sequence
}

// closeSubscriptions closes the subscriptions for requests; what has come by then is still heard.
func (p *Partition) closeSubscriptions() {
	ctx, cancel := context.WithTimeout(p.Env.Background, LeaveLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range p.inputs.subscriptions {
		wg.Go(func() {
			if s.Drain(ctx) != nil {
				_ = s.Close() // out of time, or out of connection
			}
		})
	}
	wg.Wait()
}

// seal ends everything but the passing on of answers.
func (p *Partition) seal() {
	l := p.leaving
	if p.hasOwed() {
		p.Log.Info("leaving with open effects: the next owner repeats them")
	}
	l.checkpoint = p.handover.Positions()
	l.checkpoint.Handed = p.decisions.Handed()
	l.passes = len(p.decisions.Asks) > 0
	l.stage = handed
	for reply, m := range p.inputs.requests.take() {
		// out of time: the next owner answers, or the server says that there is none
		p.Env.Relay.Send(p.Partition, reply, m.Header, m.Data)
	}
	p.refuseReports()
	p.alarms.Refuse()
	close(p.departed)
}
