package cache

import (
	"errors"
	"time"

	"github.com/droverhq/drover/broker/partition/actor"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
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
func (c *Cache) unloaded(r *actor.Run, err error) { c.Unread(r, err, func() { c.load(r) }) }

// Unread is called when the history of a run could not be read. again reads it once more.
func (c *Cache) Unread(r *actor.Run, err error, again func()) {
	log := c.Log.WithError(err).WithField("workflow", r.WorkflowID)
	r.Damage.Tries++
	if !errors.Is(err, runs.ErrDamaged) || r.Damage.Tries < env.DamagedTries {
		if r.Damage.Tries == 1 || r.Damage.Tries%env.DamagedTries == 0 {
			log.Warn("a run cannot be loaded; trying again")
		}
		c.Loop.After(env.LoadRetry, again)
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
	c.host.EndRecall(r)
	if r.Load.IsAside() && !known {
		c.host.SetAside(r)
	}
	c.host.TurnAwayAll(r)
	r.Damage.Look = c.Loop.After(damagedRetry, func() { r.Damage.Look = nil; again() })
	r.Damage.Again = again
}

// LookNow reads a history again that could not be followed.
func (c *Cache) LookNow(r *actor.Run) {
	if r.Damage.Look != nil { // else it is being read
		c.Loop.Cancel(r.Damage.Look)
		r.Damage.Look = nil
		r.Damage.Again()
	}
}

// IsIntact is called when a run could be loaded. It returns false if that is to no avail.
func (c *Cache) IsIntact(r *actor.Run) bool {
	if r.Load.IsUnreadable() {
		c.Log.WithField("workflow", r.WorkflowID).
			Info("the history of a workflow can be read again")
	}
	aside, overflown := r.Load.IsAside(), r.Damage.Overflown
	r.Load.Readable()
	r.Damage.Tries, r.Damage.Err, r.Damage.Overflown, r.Damage.Again = 0, nil, false, nil
	switch {
	case overflown:
		c.host.Fail("workflow %q can be read again: what came for it is read once more",
			r.WorkflowID)
		return false
	case aside:
		c.When(r, func() { c.host.GoOn(r) })
	}
	return true
}

// WhenKnown runs f once the run is loaded, or broken once its history cannot be followed.
func (c *Cache) WhenKnown(r *actor.Run, f, broken func()) {
	switch {
	case r.Load.IsUnreadable():
		broken()
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Broken: broken})
	default:
		f()
	}
}

// WhenKept runs f once the run is loaded, or aside once it is set aside. A run of a later version
// keeps them waiting: it is for what the history owes.
func (c *Cache) WhenKept(r *actor.Run, f, aside func()) {
	switch {
	case r.Load.IsAside():
		aside()
	case r.Load.Waits():
		r.Then = append(r.Then, actor.Awaited{Run: f, Broken: aside, Patient: true})
	default:
		f()
	}
}
