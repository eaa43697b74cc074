package broker

// used are the runs in memory, the longest untouched first. The links stand in the runs.
//
// Considered: container/list. Its element for each run has the size of a leaf in NATS's index of subjects, which stays: what such garbage
// leaves behind are holes that nobody can give back.
type used struct {
	first, last *run
	n           int
}

// usedLink is a run's place among the used.
type usedLink struct {
	before, behind *run
}

// toBack makes a run the one that was touched last.
func (u *used) toBack(r *run) {
	if u.last == r {
		return
	}
	u.remove(r)
	r.used = usedLink{before: u.last}
	if u.last == nil {
		u.first = r
	} else {
		u.last.used.behind = r
	}
	u.last = r
	u.n++
}

func (u *used) remove(r *run) {
	l := r.used
	if l.before == nil && u.first != r {
		return // it is in no list
	}
	if l.before == nil {
		u.first = l.behind
	} else {
		l.before.used.behind = l.behind
	}
	if l.behind == nil {
		u.last = l.before
	} else {
		l.behind.used.before = l.before
	}
	r.used = usedLink{}
	u.n--
}
