package keyed

import (
	"github.com/droverhq/drover/broker/states"
	"github.com/droverhq/drover/schemas"
)

// settledMany is how many settled writes are left in a key for the next writer to take out.
const settledMany = 8

// Writes is what an owner knows of the writes in the record of a state key. Those of its
// partition's runs are settled once the histories have the answers, and it alone can tell. So it
// takes them out: with the next write of the key, or by one for that alone when they are many, or
// when the key is quiet. Thus a key that nobody writes any more names no writes, and one that was
// cleared goes.
type Writes struct {
	tidy    bool // settled writes are to be taken out, although nobody writes
	tidied  bool // by what is being carried out
	trying  bool // a try is not stored: what it would have taken out is still there
	settled map[schemas.StateWrite]bool
	judged  map[schemas.StateWrite]bool // writes of former owners that are being looked up
}

// Settled notes that the history has the answer to a write. It tells whether the settled ones are
// so many that they are to be taken out now.
func (k *Writes) Settled(w schemas.StateWrite) (many bool) {
	if k.settled == nil {
		k.settled = make(map[schemas.StateWrite]bool)
	}
	id := nameOf(&w)
	delete(k.judged, id)
	k.settled[id] = true
	return len(k.settled) >= settledMany
}

// Unanswered notes that a write that was looked up has no answer yet. It is settled when it gets
// one.
func (k *Writes) Unanswered(w schemas.StateWrite) { delete(k.judged, nameOf(&w)) }

// Left tells whether settled writes may be left in the record.
func (k *Writes) Left() bool { return len(k.settled) > 0 }

// Tidy has settled writes taken out by the next try.
func (k *Writes) Tidy() { k.tidy = true }

// Pending tells whether a try is called for although no run waits.
func (k *Writes) Pending() bool { return k.tidy }

// Idle tells whether there is nothing to remember.
func (k *Writes) Idle() bool {
	return !k.tidy && !k.trying && len(k.settled)+len(k.judged) == 0
}

// Begin begins a try: it takes out what is settled if that is wanted, or if the record is full. It
// tells whether that has changed the record.
func (k *Writes) Begin(r *schemas.StateRecord) (changed bool) {
	if k.tidy || k.trying || len(r.Unsettled) >= schemas.MaxStateWrites {
		k.tidy, k.tidied = false, true
		changed = states.Settle(r, k.knows)
	}
	k.trying = true
	return changed
}

// TakeOut takes out what is settled of a record that is about to be written.
func (k *Writes) TakeOut(r *schemas.StateRecord) { states.Settle(r, k.knows) }

// End ends a try, of which r is the record as it stands now. What is no longer in it is forgotten.
func (k *Writes) End(r *schemas.StateRecord) {
	k.trying = false
	if len(k.settled) == 0 {
		return
	}
	left := make(map[schemas.StateWrite]bool)
	for i := range r.Unsettled {
		if id := nameOf(&r.Unsettled[i]); k.settled[id] {
			left[id] = true
		}
	}
	k.settled = left
}

// Unknown returns the writes of this partition's runs that former owners have left in the record,
// to be looked up. They are wanted when it is time to take writes out, or if they are many, or if
// the key is cleared and could go. Each is answered with Settled or Unanswered.
func (k *Writes) Unknown(r *schemas.StateRecord, ours func(wid string) bool) []schemas.StateWrite {
	look := k.tidied || len(r.Unsettled) >= settledMany || r.Cleared
	k.tidied = false
	if !look {
		return nil
	}
	var all []schemas.StateWrite
	for i := range r.Unsettled {
		w := nameOf(&r.Unsettled[i])
		if !ours(w.WorkflowID) || k.settled[w] || k.judged[w] {
			continue
		}
		if k.judged == nil {
			k.judged = make(map[schemas.StateWrite]bool)
		}
		k.judged[w] = true
		all = append(all, w)
	}
	return all
}

// knows tells whether a write is settled, as far as this owner knows.
func (k *Writes) knows(w *schemas.StateWrite) bool { return k.settled[nameOf(w)] }

// nameOf is a write without its revision.
func nameOf(w *schemas.StateWrite) schemas.StateWrite {
	return schemas.StateWrite{WorkflowID: w.WorkflowID, Run: w.Run, EventID: w.EventID}
}
