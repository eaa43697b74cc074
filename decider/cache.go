package decider

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/droverhq/drover/schemas"
)

// digest identifies a reply by its bytes as sent: the first 8 bytes of their SHA-256, in hex. The
// broker keeps it in DeciderCompleted and hands it back as the base of the run's next task.
func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return string(hex.AppendEncode(make([]byte, 0, 16), sum[:8]))
}

// eventOverhead is what a decoded event takes besides its bytes on the wire, roughly.
const eventOverhead = 200

// cacheEntry is a reply of this worker: the history up to its DeciderStarted was known when it was
// sent.
type cacheEntry struct {
	startedID int64
	digest    string
	token     string // of the task that it answered
	// n of the run's kept events belong to the mark; fewer than startedID if not all were known.
	// bytes is their size.
	n, bytes int
}

func (m *cacheEntry) cost() int { return m.bytes + m.n*eventOverhead }

type runKey struct{ workflowID, run string }

// kept is what the cache knows of a run: its events from 1 on, and the replies that the next task
// may be based on. That is the last one sent, or, if the broker refused it or never got it, the one
// before.
type kept struct {
	key     runKey
	events  []schemas.Event
	entries []cacheEntry
	cost    int
}

// cache keeps the histories of the runs that this worker has answered for (P-11). Nothing in it is
// trusted but on the broker's proof that a mark is the last committed reply: only then are the
// events up to the mark's DeciderStarted those of the history. A worker that answered a run and
// lost it to another would otherwise decide on a history that never was.
//
// Runs whose deciders never ask for history are kept too; the bound in bytes keeps that cheap.
// Considered and left: to learn which types need history. It would make the first reads of each
// process depend on luck.
type cache struct {
	maxRuns, maxCost int

	mu    sync.Mutex
	cost  int
	runs  map[runKey]*list.Element // of *kept
	order *list.List               // the front was used last
}

// newCache returns nil, the cache that keeps nothing, for less than one run.
func newCache(runs, bytes int) *cache {
	if runs < 1 {
		return nil
	}
	return &cache{
		maxRuns: runs,
		maxCost: bytes,
		runs:    make(map[runKey]*list.Element),
		order:   list.New(),
	}
}

// recall hands the task what is known of its run and still true. What the broker's base contradicts
// is forgotten.
func (c *cache) recall(t *Task) {
	if c == nil || t.task.PreviousStartedID == 0 {
		return // no reply was committed yet, and the window is the whole history
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.runs[t.key()]
	if el == nil {
		return
	}
	k, _ := el.Value.(*kept)
	base := t.task.Base
	i := slices.IndexFunc(k.entries, func(m cacheEntry) bool {
		return base != nil && m.digest == base.Digest && m.startedID == t.task.PreviousStartedID &&
			base.CompletedID > m.startedID
	})
	if i < 0 {
		c.remove(el)
		return
	}
	m := k.entries[i]
	// Clipped, so that the task cannot grow its slice into memory that the cache goes on using.
	t.base, t.past, t.pastBytes = &m, slices.Clip(k.events[:m.n]), m.bytes
	c.order.MoveToFront(el)
}

// keep remembers a reply that is about to be sent and the history it was based on. A run that the
// reply closes goes to the end of the queue: it is asked again only if the broker refuses the
// close.
func (c *cache) keep(t *Task, sent string, closes bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.runs[t.key()]
	if el == nil {
		// those of the task are part of its message
		key := runKey{strings.Clone(t.task.WorkflowID), strings.Clone(t.task.Run)}
		el = c.order.PushFront(&kept{key: key})
		c.runs[key] = el
	}
	k, _ := el.Value.(*kept)
	m := cacheEntry{
		startedID: t.task.StartedID,
		digest:    sent,
		token:     strings.Clone(t.task.Token),
		n:         len(t.past) + len(t.task.Events),
		bytes:     t.pastBytes + t.windowBytes,
	}
	k.entries = k.entries[:0]
	if int64(len(t.past)) < t.task.PreviousStartedID || m.cost() > c.maxCost {
		// The past was not asked for, or is more than the whole cache may hold. Only the proof of
		// the reply is kept.
		k.events, m.n, m.bytes = nil, 0, 0
	} else {
		k.events = joined(k.events, t.past, t.task.Events)
	}
	if t.base != nil {
		b := *t.base
		if b.n, b.bytes = 0, 0; k.events != nil {
			b.n, b.bytes = len(t.past), t.pastBytes
		}
		k.entries = append(k.entries, b)
	}
	k.entries = append(k.entries, m)
	c.cost += m.cost() - k.cost
	k.cost = m.cost()
	if c.order.MoveToFront(el); closes {
		c.order.MoveToBack(el)
	}
	c.shrink()
}

// joined returns past and window as one slice. If past is all that kept holds, kept grows in place:
// nobody else writes after its end, and those who read it hold slices that end before.
func joined(kept, past, window []schemas.Event) []schemas.Event {
	if len(kept) > 0 && len(kept) == len(past) && &kept[0] == &past[0] {
		return append(kept, window...)
	}
	return slices.Concat(past, window)
}

func (c *cache) shrink() {
	for len(c.runs) > c.maxRuns || c.cost > c.maxCost {
		c.remove(c.order.Back())
	}
}

func (c *cache) remove(el *list.Element) {
	k, _ := c.order.Remove(el).(*kept)
	delete(c.runs, k.key)
	c.cost -= k.cost
}

func (t *Task) key() runKey { return runKey{t.task.WorkflowID, t.task.Run} }
