package deciders

import (
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	// leastCalled is how many runs of a type are asked for at once at first, and mostCalled how
	// many at most.
	leastCalled = 128
	mostCalled  = 16384
	// learnFrom is from how many answers their mean is taken, and by how many the width changes
	// then.
	learnFrom = 64
	// ConfirmAfter is how long a decider may think before its DeciderStarted is written.
	ConfirmAfter = 250 * time.Millisecond
	// soonAnswered is how long answers may take for the width to grow, if they do not take longer
	// than ConfirmAfter, as those of deciders that think for long do: the start of what is answered
	// later than that is a record of its own, which makes a busy server slower, and the next
	// answers later.
	soonAnswered = schemas.Duration(ConfirmAfter / 8)
)

// Queue is the backlog of one type.
type Queue struct {
	typ   string
	order []string // from head on; "" has left
	head  int
	n     int

	// width is how many may be recalled at once. It grows while answers take hardly longer than
	// when there were leastCalled.
	width, recalled int
	usual           schemas.Duration // that time
	answers         int              // since the width was looked at, and their time
	took            schemas.Duration
}

// Answered learns from an answer how many to recall at once. Means are compared, since the
// decisions of a type may differ, and with that of the least width, which is taken anew each time:
// who compares with the last one follows a worker that lags.
func (q *Queue) Answered(took schemas.Duration) {
	q.took += took
	if q.answers++; q.answers < learnFrom {
		return
	}
	mean := q.took / learnFrom
	q.answers, q.took = 0, 0
	switch {
	case mean > soonAnswered && mean < schemas.Duration(ConfirmAfter):
		q.width = max(q.width/2, leastCalled)
	case q.width == leastCalled:
		q.usual = mean
		q.width += learnFrom
	case mean <= q.usual+q.usual/4:
		q.width = min(q.width+learnFrom, mostCalled)
	default:
		q.width = max(q.width/2, leastCalled)
	}
}

// Ended says that the question for a recalled run has come to its end, or that there was none.
func (q *Queue) Ended() { q.recalled-- }
