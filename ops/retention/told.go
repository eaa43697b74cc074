package retention

import (
	"context"
	"slices"
	"sync"

	"github.com/droverhq/drover/broker"
)

const (
	// maxClosed bounds the closed runs that wait to be heard of, manyClosed is when that is not
	// left to the next pass.
	maxClosed  = 32 << 10
	manyClosed = 1 << 10
	// fewRead is how many records are read at once that were not told of.
	fewRead = 1 << 10
)

// closedFeed is what owners in this process say that they have written (ADR 0043). What is lost of
// it is read instead: a janitor only goes by a span that begins where it has come to by then.
type closedFeed struct {
	mu    sync.Mutex
	open  bool // somebody listens
	spans map[int][]span
	n     int // runs in them
	many  chan struct{}
}

// span is records of one owner, one after the other, and the runs that they have closed.
type span struct {
	from, to uint64
	closed   []broker.Change
}

func newClosedFeed() *closedFeed {
	return &closedFeed{spans: map[int][]span{}, many: make(chan struct{}, 1)}
}

// listen begins or ends to listen, with nothing heard.
func (t *closedFeed) listen(open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = open
	t.clear()
}

// forget drops what has not been heard.
func (t *closedFeed) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

func (t *closedFeed) clear() {
	clear(t.spans)
	t.n = 0
}

func (t *closedFeed) add(p int, s span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open {
		return
	}
	all := t.spans[p]
	if n := len(all); n > 0 && all[n-1].to >= s.from {
		// the stream has lost its end since, and has other records there
		t.drop(p, n)
		all = nil
	}
	if n := len(all); n > 0 && all[n-1].to+1 == s.from &&
		len(all[n-1].closed)+len(s.closed) < manyClosed {
		all[n-1].to, all[n-1].closed = s.to, append(all[n-1].closed, s.closed...)
	} else {
		t.spans[p] = append(all, s)
	}
	// The oldest are nearest to what is being read.
	for t.n += len(s.closed); t.n > maxClosed && len(t.spans[p]) > 0; {
		t.drop(p, 1)
	}
	if t.n >= manyClosed {
		select {
		case t.many <- struct{}{}:
		default:
		}
	}
}

// drop takes the first spans of a partition away.
func (t *closedFeed) drop(p, n int) {
	for _, s := range t.spans[p][:n] {
		t.n -= len(s.closed)
	}
	if t.spans[p] = slices.Delete(t.spans[p], 0, n); len(t.spans[p]) == 0 {
		delete(t.spans, p)
	}
}

// take is the first span that ends after what was read up to next. whole says that it begins there
// or before, and takes it away; else what is before it has to be read.
func (t *closedFeed) take(p int, next uint64) (s span, whole bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.spans[p]) > 0 {
		s = t.spans[p][0]
		switch {
		case s.to < next:
			t.drop(p, 1)
		case s.from > next:
			return s, false
		default:
			t.drop(p, 1)
			return s, true
		}
	}
	return span{}, false
}

// Changed takes what the owner of a partition in this process says of its records: those numbered
// from, to to are its own, stand in the history, and belong to these runs. The janitor keeps those
// that have closed, and does not read the records. It does not block, and is safe for concurrent
// use.
func (j *Janitor) Changed(partition int, from, to uint64, changed []broker.Change) {
	var closed []broker.Change
	for i := range changed {
		if changed[i].Line.Status.Closed() {
			closed = append(closed, changed[i])
		}
	}
	j.feed.add(partition, span{from, to, closed})
}

// hear goes by what was told of a partition, up to the first record that has to be read, which may
// be one that is not written yet; before is then where the next span begins, 0 if there is none.
// The caller holds passing.
func (j *Janitor) hear(ctx context.Context, p int) (before uint64, err error) {
	for {
		s, whole := j.feed.take(p, j.next[p])
		if !whole {
			return s.from, nil
		}
		for i := range s.closed {
			c := &s.closed[i]
			if c.Sequence < j.next[p] {
				continue
			}
			if err := j.closed(ctx, j.entryOf(p, c.Sequence, c.Line.ClosedAt.Time(), c.Line.Run), &c.Line); err != nil {
				return 0, err // the rest is read
			}
			j.next[p] = c.Sequence + 1
		}
		j.next[p] = s.to + 1
	}
}

// hearSome goes by what was told of a partition, and reads the little that may be missing before
// it: a fence, or some records of the owner before.
func (j *Janitor) hearSome(ctx context.Context, p int) error {
	before, err := j.hear(ctx, p)
	if err != nil || before == 0 || before-j.next[p] > fewRead {
		return err
	}
	return j.catch(ctx, p, before-1)
}

// hearOn goes by what was told whenever that is much, until ctx ends.
func (j *Janitor) hearOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-j.feed.many:
		}
		if !j.passing.TryLock() {
			continue // the pass does
		}
		for p := range j.o.Partitions {
			if err := j.hearSome(ctx, p); err != nil && ctx.Err() == nil {
				j.o.Logger.WithField("err", err).
					Debug("closed runs could not be looked after; the next pass reads of them")
			}
		}
		j.passing.Unlock()
	}
}
