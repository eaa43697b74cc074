package keyed

import (
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// Verdict is what is to be done about a place.
type Verdict uint8

// The verdicts.
const (
	// Agree: the place and its run agree, or the run has nothing to gain yet.
	Agree Verdict = iota
	// TakeOut: the run has closed, let go, or never asked. Its place is taken out.
	TakeOut
	// Tell: the run holds the lock and was not told.
	Tell
	// Expire: the lease of the run is over.
	Expire
	// Later: compare again after Judgement.After.
	Later
	// Enter: the run enters again: it has lost its place, or may get in now.
	Enter
)

// Judgement is a verdict with what it is about.
type Judgement struct {
	Verdict Verdict
	// Lock and Place are as they were last seen; nil if there is none.
	Lock  *schemas.LockRecord
	Place *schemas.LockPlace
	After time.Duration // of Later
}

// Judge compares a place, which may be gone, with its run. The run's history must have all that is
// in memory of it: what was decided and is not written yet must change no key. With l the run waits
// for the lock or has it; nil: neither. A child may enter when an ancestor does.
func (s *Views) Judge(key string, at Place, l *execution.Lock, child bool) Judgement {
	v, now := s.keys[key], s.host.Now()
	var j Judgement
	if v != nil {
		j.Lock = v.lock
		for p := range places(v.lock) {
			if PlaceOf(p) == at {
				j.Place = p
				break
			}
		}
	}
	switch place := j.Place; {
	case place == nil && (l == nil || l.Shared()):
	case l == nil || l.Shared():
		j.Verdict = TakeOut
	case place != nil && place.Fence != 0 && l.Waits():
		j.Verdict = Tell
	case place != nil && place.Fence != 0:
	case place != nil && l.Waits() && !s.mayEnter(key, at, child, now):
	case l.Expires != 0 && l.Expires <= now:
		j.Verdict = Expire
	case l.Expires != 0 && l.Expires.Sub(now) < leaseNear && place == nil:
		// Another owner's clock may be ahead of ours: then it was the lease.
		j.Verdict, j.After = Later, l.Expires.Sub(now)+leaseLook
	default:
		j.Verdict = Enter
	}
	return j
}

// mayEnter tells whether a run that waits has a reason to try again, and remembers that it may have
// one when the holder changes.
func (s *Views) mayEnter(key string, at Place, child bool, now schemas.Timestamp) bool {
	if child {
		s.WaitsForKin(key, at)
	}
	for i := range s.keys[key].lock.Holders {
		if end := s.keys[key].lock.Holders[i].Expires(); end != 0 && end <= now {
			return true
		}
	}
	return child
}
