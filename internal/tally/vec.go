package tally

import (
	"sync"
	"sync/atomic"
)

// Limit is how many labels a [Vec] tells apart.
const Limit = 200

// Vec holds a T for each of at most [Limit] labels; the others share one. Labels are names that
// users give, of which nobody knows how many there will be. A T is never removed.
type Vec[K comparable, T any] struct {
	mu       sync.RWMutex
	by       map[K]*T
	other    T
	overflow atomic.Int64
}

// Of returns that of a label.
func (v *Vec[K, T]) Of(label K) *T {
	v.mu.RLock()
	t := v.by[label]
	full := len(v.by) >= Limit
	v.mu.RUnlock()
	switch {
	case t != nil:
		return t
	case full:
		v.overflow.Add(1)
		return &v.other
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if t = v.by[label]; t != nil {
		return t
	}
	if len(v.by) >= Limit {
		v.overflow.Add(1)
		return &v.other
	}
	if v.by == nil {
		v.by = make(map[K]*T)
	}
	t = new(T)
	v.by[label] = t
	return t
}

// Each tells of all labels, in no order, and then of what the others share if there was one; isOther
// says so.
func (v *Vec[K, T]) Each(f func(label K, isOther bool, t *T)) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for label, t := range v.by {
		f(label, false, t)
	}
	if v.overflow.Load() > 0 {
		var none K
		f(none, true, &v.other)
	}
}

// Overflow is how often [Vec.Of] was asked for a label that is not told apart.
func (v *Vec[K, T]) Overflow() int64 { return v.overflow.Load() }
