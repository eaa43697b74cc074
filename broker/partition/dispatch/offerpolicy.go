package dispatch

import (
	"time"

	"github.com/droverhq/drover/internal/adapt"
	"github.com/droverhq/drover/schemas"
)

const (
	// quickLimit is how long a type's tasks may take to be offered: well below what workers
	// announce.
	quickLimit = schemas.Duration(20 * time.Millisecond)
	// absentPause and BusyPause are how long a list gets no offers when nobody listens, or the
	// worker that was asked is busy.
	absentPause = 100 * time.Millisecond
	BusyPause   = 2 * time.Millisecond
	// mostSkipped caps how many quick tasks a type must have after a slow one.
	mostSkipped = 256
	// mostQuick bounds the activity types that are known. The next task of one that is forgotten
	// goes to its list.
	mostQuick = 4096
)

// offerPolicy says whether a task is worth an offer: its type has been quick, and workers of its
// list were idle when they were last asked.
type offerPolicy struct {
	quick map[string]bool       // by activity type; false of one that was quick before
	slow  adapt.Backoff[string] // by activity type: how many quick tasks do not count
	away  map[string]time.Time  // by list: it gets no offers until then
}

func newOfferPolicy() offerPolicy {
	return offerPolicy{slow: adapt.Backoff[string]{Most: mostSkipped}}
}

// isQuick tells whether tasks of an activity type are offered.
func (o *offerPolicy) isQuick(typ string) bool { return o.quick[typ] }

// isAway tells whether a list gets no offers now.
func (o *offerPolicy) isAway(list string) bool {
	until, away := o.away[list]
	if away && time.Now().Before(until) {
		return true
	}
	delete(o.away, list)
	return false
}

// refused notes that nobody of a list has taken an offer: nobody is there, or all are busy.
func (o *offerPolicy) refused(list string, nobody bool) {
	wait := BusyPause
	if nobody {
		wait = absentPause
	}
	if o.away == nil {
		o.away = make(map[string]time.Time)
	}
	o.away[list] = time.Now().Add(wait)
}

// took notes how long a task took; 0 is not known.
func (o *offerPolicy) took(typ string, d schemas.Duration) {
	_, known := o.quick[typ]
	switch {
	case d <= 0:
	case d > quickLimit:
		o.wasSlow(typ)
	case known && o.slow.Skip(typ):
	default:
		if o.quick == nil || len(o.quick) >= mostQuick {
			o.quick = make(map[string]bool)
		}
		o.quick[typ] = true
		o.slow.Note(typ, true)
	}
}

// wasSlow notes a task that took too long for an offer.
func (o *offerPolicy) wasSlow(typ string) {
	if _, known := o.quick[typ]; known {
		o.quick[typ] = false
		o.slow.Note(typ, false)
	}
}
