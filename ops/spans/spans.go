// Package spans keeps what owners of partitions in this process tell of their records (ADR 0043),
// and follows the histories by it: what nobody told of is read from the stream.
//
// Invariants:
//
//   - Whoever tells never waits.
//   - What waits to be heard is bounded. The oldest goes first, and is read instead.
//   - A [Follower] comes to each record once, in order, by a span or by reading; it goes by a span
//     only if that begins where it has come to by then.
package spans

import (
	"slices"
	"sync"

	"github.com/droverhq/drover/broker"
)

// few is how many changes the spans have at most that are put together.
const few = 1 << 10

// Span is records of one owner, one after the other, and what they have changed, in the order of
// the records.
type Span struct {
	From, To uint64
	Changed  []broker.Change
	// own: Changed was put together here. Else others have it, too.
	own bool
}

// Queue is what was told and not heard yet. Its methods may be called by several goroutines at
// once.
type Queue struct {
	most int

	mu    sync.Mutex
	open  bool // somebody listens
	spans map[int][]Span
	n     int // changes in them
}

// NewQueue returns a queue of at most so many changes, to which nobody listens.
func NewQueue(most int) *Queue { return &Queue{most: most, spans: map[int][]Span{}} }

// Listen begins or ends to listen, with nothing heard.
func (q *Queue) Listen(open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = open
	clear(q.spans)
	q.n = 0
}

// Forget drops what has not been heard of a partition.
func (q *Queue) Forget(p int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.spans[p]); n > 0 {
		q.drop(p, n)
	}
}

// Add takes a span of a partition, and tells how many changes wait. It may keep what the span
// holds, and does not write to it.
func (q *Queue) Add(p int, s Span) (waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return 0
	}
	all := q.spans[p]
	if n := len(all); n > 0 && all[n-1].To >= s.From {
		// the stream has lost its end since, and has other records there
		q.drop(p, n)
		all = nil
	}
	if n := len(all); n > 0 && all[n-1].To+1 == s.From &&
		len(all[n-1].Changed)+len(s.Changed) < few {
		last := &all[n-1]
		if !last.own {
			last.Changed, last.own = slices.Clip(last.Changed), true
		}
		last.To, last.Changed = s.To, append(last.Changed, s.Changed...)
	} else {
		q.spans[p] = append(all, s)
	}
	// The oldest are nearest to what is being read.
	for q.n += len(s.Changed); q.n > q.most && len(q.spans[p]) > 0; {
		q.drop(p, 1)
	}
	return q.n
}

// drop takes the first spans of a partition away.
func (q *Queue) drop(p, n int) {
	for _, s := range q.spans[p][:n] {
		q.n -= len(s.Changed)
	}
	if q.spans[p] = slices.Delete(q.spans[p], 0, n); len(q.spans[p]) == 0 {
		delete(q.spans, p)
	}
}

// Take is the first span that ends after what was read up to next. whole says that it begins there
// or before, and takes it away; else what is before it has to be read.
func (q *Queue) Take(p int, next uint64) (s Span, whole bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.spans[p]) > 0 {
		s = q.spans[p][0]
		switch {
		case s.To < next:
			q.drop(p, 1)
		case s.From > next:
			return s, false
		default:
			q.drop(p, 1)
			return s, true
		}
	}
	return Span{}, false
}
