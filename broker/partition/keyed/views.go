package keyed

import (
	"iter"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

const (
	// leaseLook is how long after the end of a lease, by our estimate of the server's clock, we
	// look. The estimate is never ahead, so the lease is over by then, and a clock that stands
	// still does not make us look without pause.
	leaseLook = 20 * time.Millisecond
	// leaseNear is how far the estimates of two owners may be apart.
	leaseNear = 2 * time.Second
)

// Place names the place of a workflow in a lock.
type Place struct {
	WorkflowID string
	Asked      execution.Asked
}

// PlaceOf names a place.
func PlaceOf(p *schemas.LockPlace) Place {
	return Place{WorkflowID: p.WorkflowID, Asked: execution.Asked{Run: p.Run, EventID: p.EventID}}
}

// ViewHost is the owner that keeps views.
type ViewHost interface {
	// Ours tells whether a workflow is of the owner's partition.
	Ours(wid string) bool
	Now() schemas.Timestamp
	// After runs f on the owner's loop when d has passed, unless it is canceled.
	After(d time.Duration, f func()) (cancel func())
	// Compare has a place compared with its run, sooner or later: see [Views.Judge].
	Compare(key string, at Place)
}

// Views are the locks in which workflows of a partition have places. All methods run on the loop
// of the owner (P-13).
type Views struct {
	host ViewHost
	keys map[string]*view
}

// view is a lock that has places of this partition's workflows.
type view struct {
	lock  *schemas.LockRecord
	ours  map[Place]uint64 // their fences; 0: it waits
	kin   map[Place]bool   // those that wait and have a parent: they enter when an ancestor does
	lease func()           // cancels the look at a lease that one of ours waits for
}

// NewViews returns none.
func NewViews(host ViewHost) *Views { return &Views{host: host, keys: make(map[string]*view)} }

// See takes the next entry of a lock. Only places that have come, gone or moved are compared.
func (s *Views) See(key string, l Lock) {
	v := s.keys[key]
	if v == nil {
		v = &view{}
		s.keys[key] = v
	}
	before, had := v.lock, v.ours
	v.lock, v.ours = l.Record, s.oursIn(l.Record)
	for at, fence := range v.ours {
		if old, known := had[at]; !known || old != fence {
			s.host.Compare(key, at)
		}
	}
	for at := range had {
		if _, still := v.ours[at]; !still {
			s.host.Compare(key, at)
		}
	}
	for at := range v.kin {
		switch fence, still := v.ours[at]; {
		case !still || fence != 0:
			delete(v.kin, at)
		case highestFence(l.Record) > highestFence(before):
			s.host.Compare(key, at)
		}
	}
	s.watchLease(key, v, 0)
	if len(v.ours) == 0 {
		delete(s.keys, key)
	}
}

// oursIn returns the places of the partition's workflows, with their fences.
func (s *Views) oursIn(r *schemas.LockRecord) map[Place]uint64 {
	var ours map[Place]uint64
	for p := range places(r) {
		if !s.host.Ours(p.WorkflowID) {
			continue
		}
		if ours == nil {
			ours = make(map[Place]uint64)
		}
		ours[PlaceOf(p)] = p.Fence
	}
	return ours
}

func highestFence(r *schemas.LockRecord) uint64 {
	if r == nil || len(r.Holders) == 0 {
		return 0
	}
	return r.Holders[len(r.Holders)-1].Fence
}

// watchLease compares the first of ours that waits when a lease of a holder runs out, but not
// sooner than after least.
func (s *Views) watchLease(key string, v *view, least time.Duration) {
	if v.lease != nil {
		v.lease()
		v.lease = nil
	}
	if v.lock == nil {
		return
	}
	var first *schemas.LockPlace
	for i := range v.lock.Waiters {
		if w := &v.lock.Waiters[i]; s.host.Ours(w.WorkflowID) {
			first = w
			break
		}
	}
	soonest := schemas.Timestamp(0)
	for i := range v.lock.Holders {
		if at := v.lock.Holders[i].Expires(); at != 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	if first == nil || soonest == 0 {
		return
	}
	at := PlaceOf(first)
	v.lease = s.host.After(max(soonest.Sub(s.host.Now())+leaseLook, least), func() {
		v.lease = nil
		s.host.Compare(key, at)
		if s.keys[key] == v {
			s.watchLease(key, v, time.Second)
		}
	})
}

// Left drops a place that its run has just given back: its going is no news.
func (s *Views) Left(key string, at Place) {
	if v := s.keys[key]; v != nil {
		delete(v.ours, at)
	}
}

// WaitsForKin notes that a place may enter when an ancestor of its run does.
func (s *Views) WaitsForKin(key string, at Place) {
	v := s.keys[key]
	if v == nil {
		return
	}
	if v.kin == nil {
		v.kin = make(map[Place]bool)
	}
	v.kin[at] = true
}

// Of returns the places of a workflow, with the keys of their locks.
func (s *Views) Of(wid string) iter.Seq2[string, Place] {
	return func(yield func(string, Place) bool) {
		for key, v := range s.keys {
			for at := range v.ours {
				if at.WorkflowID == wid && !yield(key, at) {
					return
				}
			}
		}
	}
}
