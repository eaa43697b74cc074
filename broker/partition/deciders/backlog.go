package deciders

import (
	"iter"
	"strings"
	"time"

	"github.com/droverhq/drover/schemas"
)

const (
	// probeEvery is how often one run of each type that nobody listens for is asked for again.
	probeEvery = time.Second
	// alarmsEachSecond is how many alarms of its backlog runs a partition has in a second, if they
	// are many, and LongestReask how far apart those of one run are at most.
	alarmsEachSecond = 256
	LongestReask     = schemas.Duration(10 * time.Minute)
)

// Backlog has the runs that want a decision and whose type nobody decides for. They may leave the
// memory meanwhile: while all workers are away, starts go on.
//
//   - One run of each type is asked for once a second, for all of them.
//   - When somebody answers, or announces himself, the runs are recalled in the order in which they
//     came, and not all at once: a worker that is asked for 100,000 decisions in one moment answers
//     the last of them long after its deadline, and all of them are in memory again until then.
//   - Their alarms are for the next owner, who knows of no backlog, and are further apart the more
//     there are: each costs a read and two writes.
type Backlog struct {
	host    Host
	queues  map[string]*Queue // by workflow type: only those that a run waits for
	places  map[string]place  // by workflow id
	probing bool
}

type place struct {
	of *Queue
	i  int
}

// NewBacklog returns an empty one.
func NewBacklog(h Host) Backlog {
	return Backlog{host: h, queues: make(map[string]*Queue), places: make(map[string]place)}
}

// Enter lets a run wait until somebody decides for its type. One that was recalled in vain from a
// queue keeps its turn; others have none (nil).
func (b *Backlog) Enter(typ, wid string, from *Queue) {
	b.add(typ, wid, from != nil)
	if from != nil {
		from.Ended()
	}
	b.probeLater()
}

// add takes a run in after the others, or before them.
func (b *Backlog) add(typ, wid string, first bool) {
	if b.Has(wid) {
		return
	}
	q := b.queues[typ]
	if q == nil {
		q = &Queue{typ: typ, width: leastCalled}
		b.queues[typ] = q
	}
	wid = strings.Clone(wid) // what it came in need not stay
	q.n++
	if first && q.head > 0 {
		q.head--
		q.order[q.head] = wid
		b.places[wid] = place{q, q.head}
		return
	}
	q.order = append(q.order, wid)
	b.places[wid] = place{q, len(q.order) - 1}
}

// compact takes the places out that are empty, but for one at the beginning.
func (b *Backlog) compact(q *Queue) {
	order := make([]string, 1, q.n+1)
	for _, wid := range q.order[q.head:] {
		if wid != "" {
			b.places[wid] = place{q, len(order)}
			order = append(order, wid)
		}
	}
	q.order, q.head = order, 1
}

// Has tells whether a run waits.
func (b *Backlog) Has(wid string) bool {
	_, waits := b.places[wid]
	return waits
}

// Remove takes a run out. Nothing is kept of a type that no run waits for.
func (b *Backlog) Remove(wid string) {
	at, waits := b.places[wid]
	if !waits {
		return
	}
	delete(b.places, wid)
	q := at.of
	q.order[at.i] = ""
	for q.head < len(q.order) && q.order[q.head] == "" {
		q.head++
	}
	switch q.n--; {
	case q.n == 0:
		delete(b.queues, q.typ)
	case len(q.order) > 2*q.n+1024:
		b.compact(q)
	}
}

// Oldest are the workflow ids, those of each type in the order in which they came.
func (b *Backlog) Oldest() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, q := range b.queues {
			for _, wid := range q.order[q.head:] {
				if wid != "" && !yield(wid) {
					return
				}
			}
		}
	}
}

// Apart is how far apart the alarms of a run that waits are at least.
func (b *Backlog) Apart() schemas.Duration {
	return min(schemas.Duration(len(b.places))*schemas.Seconds(1)/alarmsEachSecond, LongestReask)
}

// Announced says that somebody decides for a type. Runs that wait for that are recalled, many at a
// time: those that lie together are read together.
func (b *Backlog) Announced(typ string) {
	q := b.queues[typ]
	if q == nil || q.recalled > q.width/2 {
		return
	}
	for q.recalled < q.width && q.n > 0 {
		b.recallNext(q)
	}
}

// recallNext recalls the run that has waited longest.
func (b *Backlog) recallNext(q *Queue) {
	wid := q.order[q.head]
	b.Remove(wid)
	q.recalled++
	b.host.Recall(wid, q)
}

// probeLater asks for one run of each type in a while: deciders in other languages need not
// announce themselves.
func (b *Backlog) probeLater() {
	if b.probing {
		return
	}
	b.probing = true
	b.host.After(probeEvery, b.probe)
}

func (b *Backlog) probe() {
	b.probing = false
	for _, q := range b.queues {
		b.recallNext(q)
	}
	if len(b.queues) > 0 {
		b.probeLater()
	}
}
