package deciders

import (
	"time"

	"github.com/droverhq/drover/internal/adapt"
)

const (
	// deferFor is how long a record waits for a decision.
	deferFor = 20 * time.Millisecond
	// alarmDefer is how long one waits that holds nothing but what alarms have caused.
	alarmDefer = 200 * time.Millisecond
	// MostPatience caps how many occasions are left out after decisions that came too late.
	MostPatience = 64
)

// Deferral says whether the next record of a run waits for the decision that it was asked for.
type Deferral uint8

const (
	NotDeferred Deferral = iota
	forOthers            // it waits for deferFor at most
	forAlarms            // it waits for alarmDefer at most: nothing but alarms has caused it
	waited               // it has waited, and is to be written now
	deferralStates
)

// deferralEvent is what changes a deferral.
type deferralEvent uint8

const (
	deferShort deferralEvent = iota // the decider is asked, and somebody waits for the record
	deferLong                       // the decider is asked, and nobody waits for the record
	shorten                         // somebody waits by now
	// the decision has come, or has not come in time, or nobody asks any more
	endWait
	written // everything that waited is in a record
	deferralEvents
)

// deferralMoves is the transition table: the next state, by state and event. What does not fit a
// state leaves it as it is.
var deferralMoves = [deferralStates][deferralEvents]Deferral{
	//             deferShort deferLong  shorten      endWait      written
	NotDeferred: {forOthers, forAlarms, NotDeferred, NotDeferred, NotDeferred},
	forOthers:   {forOthers, forOthers, forOthers, waited, forOthers},
	forAlarms:   {forAlarms, forAlarms, forOthers, waited, forAlarms},
	waited:      {waited, waited, waited, waited, NotDeferred},
}

func (d *Deferral) on(e deferralEvent) { *d = deferralMoves[*d][e] }

// Waits tells whether the record waits for a decision.
func (d Deferral) Waits() bool { return d == forOthers || d == forAlarms }

// HasWaited tells whether the record has waited, and does not wait again.
func (d Deferral) HasWaited() bool { return d == waited }

// End ends the wait, if the record waits.
func (d *Deferral) End() { d.on(endWait) }

// Written says that everything that waited is in a record.
func (d *Deferral) Written() { d.on(written) }

// Deferrals has the runs whose records wait for a decision, by the ask, and the types whose
// deciders were late. Types pay for the two kinds of deferrals apart.
type Deferrals struct {
	host  Host
	lists [deferralStates][]deferred // of forOthers and forAlarms, each in the order of their ends
	late  [deferralStates]adapt.Backoff[string]
}

type deferred struct {
	ask   uint64
	until time.Time
}

// NewDeferrals returns an empty one.
func NewDeferrals(h Host) Deferrals {
	d := Deferrals{host: h}
	for i := range d.late {
		d.late[i].Most = MostPatience
	}
	return d
}

// kind is the state in which a record waits.
func kind(alarmsOnly bool) Deferral {
	if alarmsOnly {
		return forAlarms
	}
	return forOthers
}

// Skip tells whether deciders of a type have been late, so that this record does not wait. It
// counts the occasion then. alarmsOnly: nothing but alarms has caused the record.
func (d *Deferrals) Skip(typ string, alarmsOnly bool) bool {
	return d.late[kind(alarmsOnly)].Skip(typ)
}

// Failing tells whether the latest decision for a record of that kind came too late.
func (d *Deferrals) Failing(typ string, alarmsOnly bool) bool {
	return d.late[kind(alarmsOnly)].Failing(typ)
}

// Note notes whether a decider has answered while a record waited.
func (d *Deferrals) Note(r Deferral, typ string, inTime bool) { d.late[r].Note(typ, inTime) }

// Begin lets a record wait for the answer to an ask.
func (d *Deferrals) Begin(r *Deferral, ask uint64, alarmsOnly bool) {
	if alarmsOnly {
		r.on(deferLong)
	} else {
		r.on(deferShort)
	}
	d.add(*r, ask)
}

// Shorten is called for a record that waits and that holds something by now that somebody waits
// for. The first of the two ends counts.
func (d *Deferrals) Shorten(r *Deferral, ask uint64) {
	if *r == forAlarms {
		r.on(shorten)
		d.add(*r, ask)
	}
}

func (d *Deferrals) add(list Deferral, ask uint64) {
	wait := deferFor
	if list == forAlarms {
		wait = alarmDefer
	}
	d.lists[list] = append(d.lists[list], deferred{ask: ask, until: time.Now().Add(wait)})
	if len(d.lists[list]) == 1 {
		d.host.After(wait, func() { d.letGo(list) })
	}
}

// letGo tells the host of the asks whose records have waited long enough.
func (d *Deferrals) letGo(list Deferral) {
	now, n, all := time.Now(), 0, d.lists[list]
	for ; n < len(all) && !all[n].until.After(now); n++ {
		d.host.DeferralOver(all[n].ask)
	}
	if d.lists[list] = all[n:]; len(all) == n {
		d.lists[list] = nil
		return
	}
	d.host.After(all[n].until.Sub(now), func() { d.letGo(list) })
}
