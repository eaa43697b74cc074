package checker

import (
	"cmp"
	"slices"

	"github.com/droverhq/drover/schemas"
)

// lockTerm is how long a workflow has held a lock by its histories: from the record with
// LockAcquired to the one in which it let go. The true one is longer: the key is taken before and
// left after. So two terms that overlap are two holders.
type lockTerm struct {
	at
	fence       uint64
	limit       int
	from, until schemas.Timestamp // by the server's clock; until 0: it holds
}

// lockFence names a holder of a lock.
type lockFence struct {
	key   string
	fence uint64
}

// step is a span that the server's clock has gone through more than once, because it was set back
// from its end to its beginning or farther. By such times nobody can tell who was first.
type step struct{ to, from schemas.Timestamp }

func (n *Namespace) stepBack(to, from schemas.Timestamp) {
	n.steps = append(n.steps, step{to, from})
}

// twice tells whether a clock that was set back has gone from one time to the other, or may have.
func (n *Namespace) twice(a, b schemas.Timestamp) bool {
	return slices.ContainsFunc(n.steps,
		func(s step) bool { return s.to <= min(a, b) && max(a, b) <= s.from })
}

// witnessLock takes what a workflow says of its locks. Who enters by an ancestor is no holder.
func (n *Namespace) witnessLock(h *History, e schemas.Event) {
	switch a := e.Attributes.(type) {
	case *schemas.LockAcquired:
		if a.Holder != nil {
			return
		}
		key := lockKey(a.Lock, a.Scope)
		id := lockFence{key, a.Fence}
		switch t := n.lockTerms[id]; {
		case t == nil:
			n.lockTerms[id] = &lockTerm{
				at: n.here(h, e), fence: a.Fence, limit: max(h.lockLimits[key], 1),
				from: n.timeOf(h, e), until: a.Expires,
			}
		case t.WorkflowID != h.workflowID:
			n.report(RuleLock, h.execution(), e.ID,
				"lock %q has fence %d, which workflow %q run %s got at event %d",
				a.Lock, a.Fence, t.WorkflowID, t.Run, t.event)
		}
	case *schemas.LockReleased:
		n.endTenure(h, lockFence{lockKey(a.Lock, a.Scope), a.Fence}, n.timeOf(h, e))
	case *schemas.LockBroken:
		id, until := lockFence{lockKey(a.Lock, a.Scope), a.Fence}, n.timeOf(h, e)
		if t := n.lockTerms[id]; t != nil && a.Cause == schemas.CauseLockLost {
			until = t.from // the key was changed by hand: nobody knows since when another holds it
		}
		n.endTenure(h, id, until)
	}
}

func (n *Namespace) timeOf(h *History, e schemas.Event) schemas.Timestamp {
	return cmp.Or(h.records.at, e.Time)
}

func (n *Namespace) endTenure(h *History, id lockFence, until schemas.Timestamp) {
	if t := n.lockTerms[id]; t != nil && t.WorkflowID == h.workflowID &&
		(t.until == 0 || until < t.until) {
		t.until = until
	}
}

// endLocks looks for a lock with more holders at one time than its limit. What was got after the
// seal is not judged: the record by which another let go may not have been read. Nor is what ends
// before it began, since the clock was set back meanwhile, and what overlaps by times that a clock
// has shown twice.
func (n *Namespace) endLocks() {
	byLock := make(map[string][]*lockTerm)
	for id, t := range n.lockTerms {
		if !t.late && (t.until == 0 || t.from <= t.until) {
			byLock[id.key] = append(byLock[id.key], t)
		}
	}
	for _, all := range byLock {
		slices.SortFunc(all, func(a, b *lockTerm) int {
			return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.fence, b.fence))
		})
		var held []*lockTerm
		for _, t := range all {
			held = slices.DeleteFunc(held, func(o *lockTerm) bool {
				return o.until != 0 && (o.until <= t.from || n.twice(t.from, o.until))
			})
			if held = append(held, t); len(held) > t.limit {
				o := held[0]
				n.report(RuleLock, t.Execution, t.event,
					"it is holder number %d of a lock with a limit of %d; workflow %q run %s "+
						"has held it since event %d", len(held), t.limit, o.WorkflowID, o.Run,
					o.event)
			}
		}
	}
}
