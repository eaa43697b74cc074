package broker

import (
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/schemas"
)

// A decision task that was taken and an offer are in the hands of a process that may end with them, and nobody says so. Deadlines
// find out: ten seconds for a decision, one for an offer. But NATS knows at once when the connection of a process is gone, and tells
// whoever publishes to where it listened. So a worker that is silent is called (ADR 0036): an empty message to the subject on which it
// listens as long as it is at work. It need not answer. If nobody listens there, what it had is given to others.
//
//   - Nothing of that is in the history. A decision is asked for again as the same task, with the same token, event and deadline: the first
//     answer counts, whoever gives it.
//   - Who has taken what anybody might take is not known. Decision tasks of the types of a worker that is gone are asked again if
//     they are young; those that take long are left to their deadlines, since most of them are with others.
//   - A worker that has lost its connection and not its life may do work twice, as behind any other timeout, if that may run twice.
//   - A worker that stops in good order, behind its last answer, says so: nothing of it is missed.
//   - Called are workers that say in their replies that they can be. A machine that stops without a word keeps its connections for
//     a while; deadlines are for that.

const (
	// probeAfter is how old a question or an offer is when its worker is called, and the least time between two calls.
	probeAfter = 100 * time.Millisecond
	// probeShare: one that is older is called for again when it has become older by a part of so many.
	probeShare = 4
	// youngTask is how old a decision task may be that anybody may have taken, to be asked again.
	youngTask = 2 * time.Second
	// mostCalls bounds the workers that are called at a time.
	mostCalls = 16
	// manyProbes is how many questions make it take twice as long until it is looked again.
	manyProbes = 4096
	// leaveTaking is how much later than the end of its subject the last word of a worker that has stopped in good order may be heard.
	leaveTaking = 50 * time.Millisecond
	// mostTwice bounds the questions whose second answer is expected. That of others becomes a dead letter.
	mostTwice         = 4096
	probeWorkerPrefix = "c"
)

// scheduleProbes looks for silent workers in a while, or sooner if that was said before. It is called with probeAfter when something was given to one.
func (p *partition) scheduleProbes(in time.Duration) {
	in *= time.Duration(1 + len(p.asks)/manyProbes)
	at := time.Now().Add(in)
	if !p.nextProbes.IsZero() && !p.nextProbes.After(at) {
		return
	}
	p.nextProbes = at
	p.loop.after(in, func() {
		if !p.nextProbes.Equal(at) {
			return // it was sooner
		}
		p.nextProbes = time.Time{}
		if p.leaving == nil && !p.sealed() {
			p.probeSilent()
		}
	})
}

// livenessProbe is for how long somebody has been waited for, at least: the youngest of what is old enough.
type livenessProbe struct {
	workers map[string]time.Duration // by name
	types   map[string]time.Duration // whoever decides for a type
	lists   map[string]time.Duration // whoever takes tasks of a list
}

// youngest notes an age.
func youngest(m *map[string]time.Duration, key string, age time.Duration) {
	if *m == nil {
		*m = make(map[string]time.Duration)
	}
	if before, ok := (*m)[key]; !ok || age < before {
		(*m)[key] = age
	}
}

// probeSilent calls the workers that have been silent for too long.
func (p *partition) probeSilent() {
	s, again := p.dueProbes()
	calls, wall := 0, time.Now()
	for name, h := range p.workers.byName { // begins anywhere, so that all have their turn
		age, silent := s.of(name, h)
		if !silent {
			continue
		}
		since := wall.Sub(h.calledAt)
		wait := max(probeAfter, (age-since)/probeShare) - since // by how old it was when it was called for
		switch {
		case wait > 0:
		case calls == mostCalls:
			wait = probeAfter
		default:
			calls++
			h.calledAt, wait = wall, max(probeAfter, age/probeShare)
			p.probeWorker(h)
		}
		if again == 0 || wait < again {
			again = wait
		}
	}
	if again > 0 {
		p.scheduleProbes(again)
	}
}

// dueProbes tells who is waited for, and in how long somebody else may have to be added; 0 for never.
func (p *partition) dueProbes() (s livenessProbe, again time.Duration) {
	wall, now := time.Now(), p.now()
	for _, r := range p.asks {
		a := r.ask
		if a.former != "" {
			continue
		}
		switch age := time.Duration(now.Sub(a.at)); {
		case age < probeAfter:
			again = probeAfter
		case a.sticky:
			youngest(&s.workers, r.sticky, age)
		case age <= youngTask:
			youngest(&s.types, r.state.Start.WorkflowType, age)
		}
	}
	for _, f := range p.offers.queue {
		if f.over() {
			continue
		}
		switch age := offerPatience - f.until.Sub(wall); {
		case age < probeAfter:
			again = probeAfter
		case f.ahead != nil:
			youngest(&s.workers, f.ahead.worker, age)
		default:
			youngest(&s.lists, f.activity.Scheduled.List, age)
		}
	}
	return s, again
}

// of tells for how long a worker has been silent, if it can be called.
func (s *livenessProbe) of(name string, h *worker) (age time.Duration, silent bool) {
	if len(h.types) == 0 {
		return 0, false
	}
	note := func(d time.Duration, ok bool) {
		if ok && (!silent || d < age) {
			age, silent = d, true
		}
	}
	d, ok := s.workers[name]
	note(d, ok)
	for _, typ := range h.types {
		d, ok = s.types[typ]
		note(d, ok)
	}
	for _, list := range h.lists {
		d, ok = s.lists[list]
		note(d, ok)
	}
	return age, silent
}

func (p *partition) probeWorker(h *worker) {
	if err := p.b.conn.PublishReply(p.b.ns.DecideAlive(h.types[0], h.name), p.replies+probeWorkerPrefix+"."+strconv.FormatUint(h.number, 36), nil, nil); err != nil {
		p.log.WithError(err).Debug("a worker cannot be called at this moment")
	}
}

// workerGone: nobody listens where a worker did. What it had, or may have had, is for others.
func (p *partition) workerGone(number uint64) {
	h := p.workers.numbered(number)
	if h == nil || p.leaving != nil || p.sealed() {
		return
	}
	name := h.name
	delete(p.workers.byName, name)
	asked, offered, now := 0, 0, p.now()
	for _, r := range p.asks {
		a := r.ask
		young := time.Duration(now.Sub(a.at)) <= youngTask
		if a.former == "" && (a.sticky && r.sticky == name || !a.sticky && young && slices.Contains(h.types, r.state.Start.WorkflowType)) {
			p.askAgain(r)
			asked++
		}
	}
	for _, f := range slices.Clone(p.offers.queue) {
		switch {
		case f.over():
		case f.ahead != nil && f.ahead.worker == name:
			p.refusedAhead(f, true)
			offered++
		case f.ahead == nil && slices.Contains(h.lists, f.activity.Scheduled.List) && time.Until(f.until) <= offerPatience-probeAfter:
			p.storeOffer(f, true)
			offered++
		}
	}
	p.log.WithField("worker", name).WithField("decisions", asked).WithField("tasks", offered).Info("a worker is gone: others are asked for what it may have had")
}

// askAgain sends a decision task to whoever listens, though somebody may be at it.
func (p *partition) askAgain(r *run) {
	a := r.ask
	r.sticky, a.sticky = "", false
	if r.windowFrom > r.state.Decision.Previous { // the window must be read first
		p.unask(r)
		p.mark(r)
		return
	}
	body, err := schemas.MarshalJSON(p.task(r, a))
	if err != nil {
		p.log.WithError(err).WithField("workflow", r.wid).Error("a decision task cannot be encoded")
		return
	}
	if p.twice == nil || len(p.twice) >= mostTwice {
		p.twice = make(map[uint64]struct{})
	}
	p.twice[a.id] = struct{}{}
	if err := p.b.conn.PublishReply(p.b.ns.Decide(r.state.Start.WorkflowType), p.replies+strconv.FormatUint(a.id, 36), nil, body); err != nil {
		p.log.WithError(err).Warn("a decision task cannot be sent")
	}
}
