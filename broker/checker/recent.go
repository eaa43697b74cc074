package checker

import (
	"time"

	"github.com/droverhq/drover/schemas"
)

// Requests are remembered for rememberFor, by the times of their events, whatever came in between.
// So many of the latest are, in any case, checked: the index of a partition has room for about as
// many.
const (
	rememberFor  = schemas.Duration(10 * time.Minute)
	mostRecent   = 400_000
	leastDropped = 64
)

// requestIDs are the ids of one kind that a chain has had.
type requestIDs struct {
	latest []string // what a successor must know
	most   int      // of them
	recent *recent
}

func (r *requestIDs) remember(id string) {
	r.latest = append(r.latest[max(0, len(r.latest)+1-r.most):], id)
}

// recent are the ids of one kind that a chain had in the last while. The runs of a chain share
// them.
type recent struct {
	at    map[string]schemas.Timestamp
	order []recentID // the oldest first
}

type recentID struct {
	id string
	at schemas.Timestamp
}

// note takes the next id, and returns how long ago the chain had it before; -1 if it is too long to
// be known.
func (r *recent) note(id string, now schemas.Timestamp) schemas.Duration {
	before, had := r.at[id]
	if r.at == nil {
		r.at = make(map[string]schemas.Timestamp)
	}
	r.at[id] = now
	r.order = append(r.order, recentID{id: id, at: now})
	r.drop(now)
	if ago := schemas.Duration(now - before); had && ago < rememberFor {
		return ago
	}
	return -1
}

// drop forgets what is too old, and the oldest where there are too many.
func (r *recent) drop(now schemas.Timestamp) {
	n := max(len(r.order)-mostRecent, 0)
	for n < len(r.order) && schemas.Duration(now-r.order[n].at) >= rememberFor {
		n++
	}
	if n < leastDropped {
		return
	}
	for _, old := range r.order[:n] {
		if r.at[old.id] == old.at {
			delete(r.at, old.id)
		}
	}
	r.order = append([]recentID(nil), r.order[n:]...)
}
