package partition

import (
	"errors"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// A history may have a gap, a record that cannot be read, or one that does not follow the one
// before it. Such a run does not go on: whatever was added to it would follow from something that
// did not happen.
//
// It is read again at once, env.DamagedTries times: a replica may be late. Then whoever asks about it
// is told so, and it is set aside (ADR 0065): a dead letter names it, what comes for it goes to the
// dead letters, and no position waits for it. It is looked at every damagedRetry, and at each
// repair; once it can be read it goes on, and its open effects are repeated.
//
// A history that a later version may have written is not damaged. It is not set aside: its messages
// wait for a server that can read it, and the positions wait with them.

const (
	// damagedRetry is how often it is looked at after that. It does not heal by itself, but an
	// operator may restore it.
	damagedRetry = time.Minute
)

// unloaded is called when a run could not be loaded.
func (p *Partition) unloaded(r *actor.Run, err error) { p.unread(r, err, func() { p.load(r) }) }

// unread is called when the history of a run could not be read. again reads it once more.
func (p *Partition) unread(r *actor.Run, err error, again func()) {
	log := p.log.WithError(err).WithField("workflow", r.WorkflowID)
	r.Damage.Tries++
	if !errors.Is(err, runs.ErrDamaged) || r.Damage.Tries < env.DamagedTries {
		if r.Damage.Tries == 1 || r.Damage.Tries%env.DamagedTries == 0 {
			log.Warn("a run cannot be loaded; trying again")
		}
		p.loop.After(env.LoadRetry, again)
		return
	}
	later, known := errors.Is(err, runs.ErrLater), r.Load.IsAside()
	switch {
	case r.Load.IsUnreadable():
	case later:
		log.Error(
			"the history of a workflow is damaged, or of a later version: it does not go on, " +
				"and its messages wait; drover verify says more")
	default:
		log.Error(
			"the history of a workflow is damaged: it does not go on, and its messages become " +
				"dead letters; drover verify says more")
	}
	r.Damage.Err = err
	r.Load.Unreadable(later)
	p.decisions.EndRecall(r)
	if r.Load.IsAside() && !known {
		p.setAside(r)
	}
	p.turnAwayAll(r)
	r.Damage.Look = p.loop.After(damagedRetry, func() { r.Damage.Look = nil; again() })
	r.Damage.Again = again
}

// lookNow reads a history again that could not be followed.
func (p *Partition) lookNow(r *actor.Run) {
	if r.Damage.Look != nil { // else it is being read
		p.loop.Cancel(r.Damage.Look)
		r.Damage.Look = nil
		r.Damage.Again()
	}
}

// isIntact is called when a run could be loaded. It returns false if that is to no avail.
func (p *Partition) isIntact(r *actor.Run) bool {
	if r.Load.IsUnreadable() {
		p.log.WithField("workflow", r.WorkflowID).
			Info("the history of a workflow can be read again")
	}
	aside, overflown := r.Load.IsAside(), r.Damage.Overflown
	r.Load.Readable()
	r.Damage.Tries, r.Damage.Err, r.Damage.Overflown, r.Damage.Again = 0, nil, false, nil
	switch {
	case overflown:
		p.fail("workflow %q can be read again: what came for it is read once more", r.WorkflowID)
		return false
	case aside:
		p.when(r, func() { p.goOn(r) })
	}
	return true
}

// goOn repeats what a run has open that was set aside.
func (p *Partition) goOn(r *actor.Run) {
	p.afterPending(r, func() {
		if r.Live() && r.IsSettled() && p.runs[r.WorkflowID] == r {
			p.repairRun(r)
		}
	})
}

// whenKnown runs f once the run is loaded, or broken once its history cannot be followed.
func (p *Partition) whenKnown(r *actor.Run, f, broken func()) {
	switch {
	case r.Load.IsUnreadable():
		broken()
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Broken: broken})
	default:
		f()
	}
}

// whenKept runs f once the run is loaded, or aside once it is set aside. A run of a later version
// keeps them waiting: it is for what the history owes.
func (p *Partition) whenKept(r *actor.Run, f, aside func()) {
	switch {
	case r.Load.IsAside():
		aside()
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Broken: aside, Patient: true})
	default:
		f()
	}
}

// whenSound is whenKnown for those who want an answer: a run whose history is damaged gives them a
// refusal.
func (p *Partition) whenSound(r *actor.Run, reply func(any), f func()) {
	p.whenKnown(r, f,
		func() { reply(&schemas.AckResponse{V: schemas.Version, Error: damagedError(r)}) })
}

func damagedError(r *actor.Run) *schemas.Error {
	return env.DamageOf(r.Damage.Err, "workflow %q does not go on: %v", r.WorkflowID, r.Damage.Err).
		InField("workflowId").About(r.WorkflowID, "")
}
