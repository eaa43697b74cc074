// Package states changes the record of a state key: who reads, sets and clears it. It is pure: the
// record goes in and out, time and what is known of other writes are arguments. Package broker
// calls it between a read and a compare-and-set of the key, and nobody else does.
//
// Invariants of a record that these functions keep:
//
//   - A write happens once: it is found by its run and event, however often it is repeated, until
//     it is settled. A write is settled when the history of its run has the answer; from then on
//     nobody repeats it.
//   - By is the last write, settled or not.
//   - A write has the revision under which it was stored, as soon as the record is stored again.
//   - A key that is cleared stays for as long as one of its writes is not settled.
package states

import (
	"slices"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/requirement"
)

// Fresh is the record of a key that does not exist.
func Fresh(key, scope string) *schemas.StateRecord {
	return &schemas.StateRecord{V: schemas.Version, Key: key, Scope: scope, Cleared: true}
}

// Empty tells whether nothing of a record is worth a key.
func Empty(r *schemas.StateRecord) bool { return r.Cleared && len(r.Unsettled) == 0 }

// Op is what a run asks of a key.
type Op struct {
	// Decision is GetState, SetState or ClearState.
	Decision schemas.DecisionType
	// Write names the run and its request.
	Write   schemas.StateWrite
	Value   schemas.Payload
	Require *requirement.Requirement
}

// Outcome is what became of an [Op].
type Outcome uint8

// The outcomes.
const (
	// Done: the key has the value, or is gone, or was read.
	Done Outcome = iota + 1
	// Refused: what is required does not hold.
	Refused
	// Full: too many writes are not settled. Try again when some are.
	Full
)

// Result is the answer to an [Op]. Value is what the key had, if it was read or the requirement
// refused.
type Result struct {
	Outcome Outcome
	Value   schemas.Payload
	// Revision is that of the value; 0 if it is not stored yet, or if there is none.
	Revision uint64
	// Unstored: the revision is that of the write to come.
	Unstored bool
	Changed  bool
}

// Do carries out what a run asks, at the instant now, on a record that is fresh or has gone through
// [Read]. To repeat a write changes nothing.
func Do(r *schemas.StateRecord, op *Op, now schemas.Timestamp) Result {
	if op.Decision == schemas.DecideGetState {
		if r.Cleared {
			return Result{Outcome: Done}
		}
		return stored(&r.By, Result{Outcome: Done, Value: r.Value})
	}
	if w := find(r, &op.Write); w != nil {
		return stored(w, Result{Outcome: Done})
	}
	switch {
	case op.Decision == schemas.DecideSetState && !op.Require.Holds(r.Value, !r.Cleared):
		return Result{Outcome: Refused, Value: r.Value}
	case op.Decision == schemas.DecideClearState && r.Cleared:
		return Result{Outcome: Done}
	case len(r.Unsettled) >= schemas.MaxStateWrites:
		return Result{Outcome: Full}
	}
	r.Cleared = op.Decision == schemas.DecideClearState
	r.Value, r.By, r.At = op.Value, op.Write, now
	if r.Cleared {
		r.Value = nil
	}
	r.Unsettled = append(r.Unsettled, op.Write)
	return Result{Outcome: Done, Unstored: true, Changed: true}
}

// Read completes a record that was read with revision rev: the writes that came with it have that
// revision.
func Read(r *schemas.StateRecord, rev uint64) {
	stamp := func(w *schemas.StateWrite) {
		if w.Revision == 0 {
			w.Revision = rev
		}
	}
	stamp(&r.By)
	for i := range r.Unsettled {
		stamp(&r.Unsettled[i])
	}
}

// Settle takes out the writes that are settled, and tells whether there were any.
func Settle(r *schemas.StateRecord, settled func(*schemas.StateWrite) bool) bool {
	before := len(r.Unsettled)
	r.Unsettled = slices.DeleteFunc(r.Unsettled,
		func(w schemas.StateWrite) bool { return settled(&w) })
	if len(r.Unsettled) == 0 {
		r.Unsettled = nil
	}
	return len(r.Unsettled) != before
}

func stored(w *schemas.StateWrite, a Result) Result {
	a.Revision, a.Unstored = w.Revision, w.Revision == 0
	return a
}

// find returns a write that the record knows of.
func find(r *schemas.StateRecord, w *schemas.StateWrite) *schemas.StateWrite {
	for i := range r.Unsettled {
		if r.Unsettled[i].Is(w) {
			return &r.Unsettled[i]
		}
	}
	if r.By.Is(w) {
		return &r.By
	}
	return nil
}
