package deadlines

import "container/list"

// Usage is the order in which the runs in memory were used. The zero value is ready to use.
type Usage[R comparable] struct {
	order list.List // the longest untouched first
	ticks uint32    // of the checkpoint's clock
	// due: there was a tick since idle runs were looked for.
	due     bool
	allowed int // how many may be evicted
}

// Use is the place of one run in it. The zero value is that of one that is not there.
type Use struct {
	at      *list.Element
	touched uint32 // the tick of the last message
}

// Tick is one tick of the checkpoint's clock.
func (u *Usage[R]) Tick() { u.ticks, u.due = u.ticks+1, true }

// Ticks is how many there were.
func (u *Usage[R]) Ticks() uint32 { return u.ticks }

// Due tells whether there was a tick since Idle was called last.
func (u *Usage[R]) Due() bool { return u.due }

// Touch marks a run as used. Eight others may be evicted for it.
func (u *Usage[R]) Touch(r R, use *Use) {
	use.touched = u.ticks
	if use.at == nil {
		use.at = u.order.PushBack(r)
	}
	u.order.MoveToBack(use.at)
	u.allowed += 8
}

// Remove takes a run out, if it is there.
func (u *Usage[R]) Remove(use *Use) {
	if use.at != nil {
		u.order.Remove(use.at)
		use.at = nil
	}
}

func (u *Usage[R]) oldest() R { return u.order.Front().Value.(R) }

// Evict forgets the longest unused runs while there are too many. forget must take the run out, or
// return false if it cannot be forgotten.
func (u *Usage[R]) Evict(tooMany func() bool, forget func(R) bool) {
	for ; u.allowed > 0 && tooMany() && u.order.Len() >= 2; u.allowed-- {
		oldest := u.order.Front()
		if !forget(u.oldest()) {
			u.order.MoveToBack(oldest)
		}
	}
	u.allowed = 0
}

// Rest says how long idle runs stay, in ticks.
type Rest struct {
	Long   uint32 // where there are many
	Rested uint32 // where there are few
	Few    int    // how many are few
	AtOnce int    // how many are looked at at most
}

// Idle forgets the runs that nothing has happened to for a while. use is the place of a run; forget
// must take it out, or return false if it cannot be forgotten.
func (u *Usage[R]) Idle(rest Rest, use func(R) *Use, forget func(r R, few bool) bool) {
	u.due = false
	for range min(rest.AtOnce, u.order.Len()) {
		r := u.oldest()
		idle, few := u.ticks-use(r).touched, u.order.Len() <= rest.Few
		if idle < rest.Long || few && idle < rest.Rested {
			return
		}
		if !forget(r, few) {
			use(r).touched = u.ticks
			u.order.MoveToBack(use(r).at)
		}
	}
}
