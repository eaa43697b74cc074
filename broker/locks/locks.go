// Package locks changes the record of a lock: who enters, who leaves, and who comes next. It is
// pure: the record goes in and out, time and what is known of ancestors are arguments. Package
// broker calls it between a read and a compare-and-set of the lock's key, and nobody else does.
//
// Invariants of a record that these functions keep:
//
//   - There are at most Limit holders, in the order of their fences, and every fence is below Next.
//   - A run has one place for one request: it holds, or it waits.
//   - If there is room, nobody waits.
//   - Who came first is the first to hold.
package locks

import (
	"slices"

	"github.com/droverhq/drover/schemas"
)

// perMessage is more than the holders that ever enter by one message of the bucket.
const perMessage = 1 << 16

// Fresh is the record of a lock that nobody holds. Its fences begin beyond those of all records
// that the key has had, by the sequence of the last message in the bucket: a record begins at a
// multiple of it, and of a lock that several may hold many enter by one message, but never so many.
func Fresh(lock, scope string, last uint64) *schemas.LockRecord {
	return &schemas.LockRecord{
		V: schemas.Version, Lock: lock, Scope: scope, Limit: 1, Next: last*perMessage + 1,
		Holders: []schemas.LockPlace{},
	}
}

// Outcome is what became of an entry.
type Outcome uint8

// The outcomes.
const (
	// Holds: the run has the lock.
	Holds Outcome = iota + 1
	// Waits: it stands in line.
	Waits
	// Shares: an ancestor holds the lock, and the run enters without a place of its own.
	Shares
	// Differs: the lock is in use with another limit.
	Differs
	// Full: too many wait.
	Full
	// Busy: others hold the lock, and the run does not stand in line.
	Busy
	// Lost: the run held the lock by its history, but others have taken all places.
	Lost
)

// Entry is what a run asks of a lock.
type Entry struct {
	// Place names the run and its request. With a fence the run holds the lock by its history, and
	// wants its place back if that is gone.
	Place schemas.LockPlace
	Limit int
	// Ancestors are the chains of the run's ancestors, each by its first run.
	Ancestors []schemas.Execution
	// Try: the run enters at once or not at all.
	Try bool
	// MaxWaiters bounds the line; with less than 0 there is no room in the record.
	MaxWaiters int
}

// Result is the answer to an [Entry]. Place is the holder's: the run's own, the ancestor's, or if
// the lock is busy that of the first holder.
type Result struct {
	Outcome Outcome
	Place   schemas.LockPlace
	Changed bool
}

// Enter lets a run in or puts it in line, at the instant now. To repeat an entry changes nothing.
func Enter(r *schemas.LockRecord, e Entry, now schemas.Timestamp) Result {
	if i := find(r.Holders, &e.Place); i >= 0 {
		return Result{Outcome: Holds, Place: r.Holders[i]}
	}
	if e.Place.Fence != 0 {
		return regain(r, e)
	}
	waiting := find(r.Waiters, &e.Place)
	if i := slices.IndexFunc(r.Holders, func(h schemas.LockPlace) bool { return within(e.Ancestors, &h) }); i >= 0 {
		changed := waiting >= 0
		if changed {
			r.Waiters = slices.Delete(r.Waiters, waiting, waiting+1)
		}
		return Result{Outcome: Shares, Place: r.Holders[i], Changed: changed}
	}
	changed := expire(r, now)
	switch limit := max(e.Limit, 1); {
	case waiting >= 0:
	case e.MaxWaiters < 0:
		return Result{Outcome: Full, Changed: promote(r, now) || changed}
	case Empty(r):
		r.Limit = limit
	case r.Limit != limit:
		return Result{Outcome: Differs, Changed: promote(r, now) || changed}
	case e.Try && len(r.Waiters)+len(r.Holders) >= r.Limit:
		changed = promote(r, now) || changed
		return Result{Outcome: Busy, Place: r.Holders[0], Changed: changed}
	case len(r.Waiters) >= e.MaxWaiters && len(r.Holders) >= r.Limit:
		return Result{Outcome: Full, Changed: promote(r, now) || changed}
	}
	if waiting < 0 {
		e.Place.Since = now
		r.Waiters, changed = append(r.Waiters, e.Place), true
	}
	changed = promote(r, now) || changed
	if i := find(r.Holders, &e.Place); i >= 0 {
		return Result{Outcome: Holds, Place: r.Holders[i], Changed: changed}
	}
	return Result{Outcome: Waits, Changed: changed}
}

// regain gives a run the place back that it has by its history: the key was deleted by hand, or the
// server lost it.
func regain(r *schemas.LockRecord, e Entry) Result {
	if Empty(r) {
		r.Limit = max(e.Limit, 1)
	}
	if len(r.Holders) >= r.Limit || slices.ContainsFunc(r.Holders,
		func(h schemas.LockPlace) bool { return h.Fence == e.Place.Fence }) {
		return Result{Outcome: Lost}
	}
	if i := find(r.Waiters, &e.Place); i >= 0 {
		r.Waiters = slices.Delete(r.Waiters, i, i+1)
	}
	at, _ := slices.BinarySearchFunc(r.Holders, e.Place.Fence,
		func(h schemas.LockPlace, fence uint64) int {
			if h.Fence < fence {
				return -1
			}
			return 1
		})
	r.Holders = slices.Insert(r.Holders, at, e.Place)
	r.Next = max(r.Next, e.Place.Fence+1)
	return Result{Outcome: Holds, Place: e.Place, Changed: true}
}

// Leave takes a place out, if it is there, and lets in who comes next. It tells whether it changed
// anything.
func Leave(r *schemas.LockRecord, place *schemas.LockPlace, now schemas.Timestamp) bool {
	holders, waiters := len(r.Holders), len(r.Waiters)
	same := func(p schemas.LockPlace) bool { return p.Is(place) }
	r.Holders, r.Waiters = slices.DeleteFunc(r.Holders, same), slices.DeleteFunc(r.Waiters, same)
	changed := len(r.Holders) != holders || len(r.Waiters) != waiters
	return promote(r, now) || changed
}

// Empty tells whether nobody holds the lock or waits for it.
func Empty(r *schemas.LockRecord) bool { return len(r.Holders)+len(r.Waiters) == 0 }

// Line is the number of a place in the line, from 1 on; 0 if it does not wait.
func Line(r *schemas.LockRecord, place *schemas.LockPlace) int { return find(r.Waiters, place) + 1 }

// expire takes out the holders whose lease has run out, because somebody wants the lock, and there
// is no other room.
func expire(r *schemas.LockRecord, now schemas.Timestamp) bool {
	if len(r.Holders) < r.Limit {
		return false
	}
	before := len(r.Holders)
	r.Holders = slices.DeleteFunc(r.Holders,
		func(h schemas.LockPlace) bool { return h.Expires() != 0 && h.Expires() <= now })
	return len(r.Holders) != before
}

// promote fills the room with those who wait.
func promote(r *schemas.LockRecord, now schemas.Timestamp) bool {
	n := min(len(r.Waiters), r.Limit-len(r.Holders))
	if n <= 0 {
		return false
	}
	for _, w := range r.Waiters[:n] {
		w.Fence, w.Since = r.Next, now
		r.Next++
		r.Holders = append(r.Holders, w)
	}
	if r.Waiters = slices.Delete(r.Waiters, 0, n); len(r.Waiters) == 0 {
		r.Waiters = nil
	}
	return true
}

func find(places []schemas.LockPlace, p *schemas.LockPlace) int {
	return slices.IndexFunc(places, func(o schemas.LockPlace) bool { return o.Is(p) })
}

func within(chains []schemas.Execution, h *schemas.LockPlace) bool {
	return slices.Contains(chains, schemas.Execution{WorkflowID: h.WorkflowID, Run: h.Chain()})
}
