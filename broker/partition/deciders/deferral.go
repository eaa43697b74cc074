package deciders

import (
	"time"

	"github.com/droverhq/drover/internal/adapt"
)

const (
	// deferFor is how long a record waits for a decision.
	deferFor = 20 * time.Millisecond
	// MostPatience caps how many occasions are left out after decisions that came too late.
	MostPatience = 64
)

// Deferral says whether the next record of a run waits for the decision that it was asked for.
type Deferral uint8

const (
	NotDeferred Deferral = iota
	waits                // it waits for deferFor at most
	waited               // it has waited, and is to be written now
	deferralStates
)

// deferralEvent is what changes a deferral.
type deferralEvent uint8

const (
	begin deferralEvent = iota // the decider is asked
	// the decision has come, or has not come in time, or nobody asks any more
	endWait
	written // everything that waited is in a record
	deferralEvents
)

// deferralMoves is the transition table: the next state, by state and event. What does not fit a
// state leaves it as it is.
var deferralMoves = [deferralStates][deferralEvents]Deferral{
	//           begin  endWait      written
	NotDeferred: {waits, NotDeferred, NotDeferred},
	waits:       {waits, waited, waits},
	waited:      {waited, waited, NotDeferred},
}

func (d *Deferral) on(e deferralEvent) { *d = deferralMoves[*d][e] }

// Waits tells whether the record waits for a decision.
func (d Deferral) Waits() bool { return d == waits }

// HasWaited tells whether the record has waited, and does not wait again.
func (d Deferral) HasWaited() bool { return d == waited }

// End ends the wait, if the record waits.
func (d *Deferral) End() { d.on(endWait) }

// Written says that everything that waited is in a record.
func (d *Deferral) Written() { d.on(written) }

// Deferrals has the runs whose records wait for a decision, by the ask, and the types whose
// deciders were late.
type Deferrals struct {
	host Host
	list []deferred // in the order of their ends
	late adapt.Backoff[string]
}

type deferred struct {
	ask   uint64
	until time.Time
}

// NewDeferrals returns an empty one.
func NewDeferrals(h Host) Deferrals {
	return Deferrals{host: h, late: adapt.Backoff[string]{Most: MostPatience}}
}

// Skip tells whether deciders of a type have been late, so that this record does not wait. It
// counts the occasion then.
func (d *Deferrals) Skip(typ string) bool { return d.late.Skip(typ) }

// Failing tells whether the latest decision that a record of a type waited for came too late.
func (d *Deferrals) Failing(typ string) bool { return d.late.Failing(typ) }

// Note notes whether a decider has answered while a record waited.
func (d *Deferrals) Note(typ string, inTime bool) { d.late.Note(typ, inTime) }

// Begin lets a record wait for the answer to an ask.
func (d *Deferrals) Begin(r *Deferral, ask uint64) {
	r.on(begin)
	d.list = append(d.list, deferred{ask: ask, until: time.Now().Add(deferFor)})
	if len(d.list) == 1 {
		d.host.After(deferFor, d.letGo)
	}
}

// letGo tells the host of the asks whose records have waited long enough.
func (d *Deferrals) letGo() {
	now, n, all := time.Now(), 0, d.list
	for ; n < len(all) && !all[n].until.After(now); n++ {
		d.host.DeferralOver(all[n].ask)
	}
	if d.list = all[n:]; len(all) == n {
		d.list = nil
		return
	}
	d.host.After(all[n].until.Sub(now), d.letGo)
}
