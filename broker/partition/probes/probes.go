package probes

import (
	"slices"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/partition/deciders"
	"github.com/droverhq/drover/schemas"
)

// A decision task that was taken and an offer are in the hands of a process that may end with them,
// and nobody says so. Deadlines find out: ten seconds for a decision, one for an offer. But NATS
// knows at once when the connection of a process is gone, and tells whoever publishes to where it
// listened. So a worker that is silent is called (ADR 0036): an empty message to the subject on
// which it listens as long as it is at work. It need not answer. If nobody listens there, what it
// had is given to others.
//
//   - Nothing of that is in the history. A decision is asked for again as the same task, with the
//     same token, event and deadline: the first answer counts, whoever gives it.
//   - Who has taken what anybody might take is not known. Decision tasks of the types of a worker
//     that is gone are asked again if they are young; those that take long are left to their
//     deadlines, since most of them are with others.
//   - A worker that has lost its connection and not its life may do work twice, as after any other
//     timeout, if that may run twice.
//   - A worker that stops in good order, after its last answer, says so: nothing of it is missed.
//   - Called are workers that say in their replies that they can be. A machine that stops without a
//     word keeps its connections for a while; deadlines are for that.

const (
	// manyProbes is how many questions make it take twice as long until it is looked again.
	manyProbes = 4096
	// LeaveTaking is how much later than the end of its subject the last word of a worker that has
	// stopped in good order may be heard.
	LeaveTaking = 50 * time.Millisecond
	Prefix      = "c"
)

// Schedule looks for silent workers in a while, or sooner if that was said before. It is
// called with deciders.ProbeAfter when something was given to one.
func (pr *Probes) Schedule(in time.Duration) {
	in *= time.Duration(1 + len(pr.decisions.Asks)/manyProbes)
	at := time.Now().Add(in)
	if !pr.nextProbes.IsZero() && !pr.nextProbes.After(at) {
		return
	}
	pr.nextProbes = at
	pr.Loop.After(in, func() {
		if !pr.nextProbes.Equal(at) {
			return // it was sooner
		}
		pr.nextProbes = time.Time{}
		if !pr.host.Leaving() && !pr.host.Sealed() {
			pr.probeOverdue()
		}
	})
}

// probeOverdue probes the workers that have been silent for too long.
func (pr *Probes) probeOverdue() {
	due, again := pr.decisions.Deciders.Workers.Probes(pr.waitsForWorkers())
	for _, w := range due {
		pr.probeWorker(w)
	}
	if again > 0 {
		pr.Schedule(again)
	}
}

// waitsForWorkers tells who is waited for.
func (pr *Probes) waitsForWorkers() *deciders.Waits {
	s, wall, now := &deciders.Waits{}, time.Now(), pr.host.Now()
	for _, r := range pr.decisions.Asks {
		a := r.Decider.Ask
		if a.Former != "" {
			continue
		}
		age := time.Duration(now.Sub(a.At))
		if a.Sticky {
			s.ForWorker(r.Decider.Sticky, age)
		} else {
			s.ForType(r.State.Start.WorkflowType, age)
		}
	}
	for _, f := range pr.dispatch.OpenOffers() {
		age := schemas.OfferPatience - f.Until.Sub(wall)
		if f.Ahead != nil {
			s.ForWorker(f.Ahead.Worker, age)
		} else {
			s.ForList(f.Activity.Scheduled.List, age)
		}
	}
	return s
}

func (pr *Probes) probeWorker(w *deciders.Worker) {
	to, reply := pr.Env.NS.DecideAlive(w.Types[0], w.Name), pr.host.Replies()+Prefix+"."+
		strconv.FormatUint(w.Number, 36)
	if err := pr.Env.Conn.PublishReply(to, reply, nil, nil); err != nil {
		pr.Log.WithError(err).Debug("a worker cannot be probed at this moment")
	}
}

// WorkerGone: nobody listens where a worker did. What it had, or may have had, is for others.
func (pr *Probes) WorkerGone(number uint64) {
	if pr.host.Leaving() || pr.host.Sealed() {
		return
	}
	h := pr.decisions.Deciders.Workers.Gone(number)
	if h == nil {
		return
	}
	name := h.Name
	asked, offered, now := 0, 0, pr.host.Now()
	for _, r := range pr.decisions.Asks {
		a := r.Decider.Ask
		young := time.Duration(now.Sub(a.At)) <= deciders.YoungTask
		if a.Former == "" && (a.Sticky && r.Decider.Sticky == name ||
			!a.Sticky && young && slices.Contains(h.Types, r.State.Start.WorkflowType)) {
			pr.decisions.AskAgain(r)
			asked++
		}
	}
	for _, f := range pr.dispatch.OpenOffers() {
		switch {
		case f.Over():
		case f.Ahead != nil && f.Ahead.Worker == name:
			pr.ahead.Refused(f, true)
			offered++
		case f.Ahead == nil && slices.Contains(h.Lists, f.Activity.Scheduled.List) &&
			time.Until(f.Until) <= schemas.OfferPatience-deciders.ProbeAfter:
			pr.dispatch.StoreOffer(f, true)
			offered++
		}
	}
	pr.Log.WithField("worker", name).WithField("decisions", asked).WithField("tasks", offered).
		Info("a worker is gone: others are asked for what it may have had")
}
