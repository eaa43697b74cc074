package history

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/droverhq/drover/schemas"
)

// Digest identifies a reply by its bytes as sent: the first 8 bytes of their SHA-256, in hex. The
// broker keeps it in DeciderCompleted and hands it back as the base of the run's next task.
func Digest(body []byte) string {
	sum := sha256.Sum256(body)
	return string(hex.AppendEncode(make([]byte, 0, 16), sum[:8]))
}

// eventOverhead is what a decoded event takes besides its bytes on the wire, roughly.
const eventOverhead = 200

// reply is one of this worker: the history up to its DeciderStarted was known when it was sent.
type reply struct {
	startedID int64
	digest    string
	token     string // of the task that it answered
	// n of the run's kept events belong to the reply; fewer than startedID if not all were known.
	// bytes is their size.
	n, bytes int
}

func (r *reply) cost() int { return r.bytes + r.n*eventOverhead }

type runKey struct{ workflowID, run string }

func keyOf(t *schemas.DecisionTask) runKey { return runKey{t.WorkflowID, t.Run} }

// kept is what the cache knows of a run: its events from 1 on, if there is room for them, and the
// replies that the next task may be based on, which prove what a decider keeps beside them. That is
// the last one sent, or, if the broker refused it or never got it, the one before.
type kept struct {
	key     runKey
	events  []schemas.Event
	replies []reply
	cost    int
	used    *list.Element // in the order of the runs
	costly  *list.Element // in the order of those with events; nil without events
}

// Cache keeps the histories of the runs that this worker has answered for (P-11). Nothing in it is
// trusted but on the broker's proof that a reply is the last committed one: only then are the
// events up to its DeciderStarted those of the history. A worker that answered a run and lost it to
// another would otherwise decide on a history that never was.
//
// The bound in bytes is that of the events, the bound of runs that of the proofs, some hundred bytes
// each: what a decider keeps beside the cache outlives the events of its run.
//
// Runs whose deciders never ask for history are kept too; the bound in bytes keeps that cheap.
// Considered and left: to learn which types need history. It would make the first reads of each
// process depend on luck.
type Cache struct {
	maxRuns, maxCost int

	mu     sync.Mutex
	cost   int
	runs   map[runKey]*kept
	order  *list.List // of *kept; the front was used last
	costly *list.List // those of order that have events, in the same order
}

// NewCache returns nil, the cache that keeps nothing, for less than one run.
func NewCache(runs, bytes int) *Cache {
	if runs < 1 {
		return nil
	}
	return &Cache{
		maxRuns: runs, maxCost: bytes, runs: make(map[runKey]*kept), order: list.New(),
		costly: list.New(),
	}
}

// Recall adds to known what the cache knows of the task's run and is still true. What the broker's
// base contradicts is forgotten.
func (c *Cache) Recall(t *schemas.DecisionTask, known *Known) {
	if c == nil || t.PreviousStartedID == 0 {
		return // no reply was committed yet, and the window is the whole history
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.runs[keyOf(t)]
	if k == nil {
		return
	}
	base := t.Base
	i := slices.IndexFunc(k.replies, func(r reply) bool {
		return base != nil && r.digest == base.Digest && r.startedID == t.PreviousStartedID &&
			base.CompletedID > r.startedID
	})
	if i < 0 {
		c.remove(k)
		return
	}
	r := k.replies[i]
	// Clipped, so that the task cannot grow its slice into memory that the cache goes on using.
	known.base, known.past, known.pastBytes = &r, slices.Clip(k.events[:r.n]), r.bytes
	c.touch(k)
}

// Keep remembers a reply that is about to be sent and the history it was based on. A run that the
// reply closes goes to the end of the queue: it is asked again only if the broker refuses the
// close.
func (c *Cache) Keep(t *schemas.DecisionTask, known *Known, digest string, closes bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.runs[keyOf(t)]
	if k == nil {
		// those of the task are part of its message
		k = &kept{key: runKey{strings.Clone(t.WorkflowID), strings.Clone(t.Run)}}
		k.used = c.order.PushFront(k)
		c.runs[k.key] = k
	}
	r := reply{
		startedID: t.StartedID,
		digest:    digest,
		token:     strings.Clone(t.Token),
		n:         len(known.past) + len(t.Events),
		bytes:     known.pastBytes + known.Window,
	}
	k.replies = k.replies[:0]
	if int64(len(known.past)) < t.PreviousStartedID || r.cost() > c.maxCost {
		// The past was not asked for, or is more than the whole cache may hold. Only the proof of
		// the reply is kept.
		k.events, r.n, r.bytes = nil, 0, 0
	} else {
		k.events = joined(k.events, known.past, t.Events)
	}
	if known.base != nil {
		b := *known.base
		if b.n, b.bytes = 0, 0; k.events != nil {
			b.n, b.bytes = len(known.past), known.pastBytes
		}
		k.replies = append(k.replies, b)
	}
	k.replies = append(k.replies, r)
	c.cost += r.cost() - k.cost
	k.cost = r.cost()
	switch {
	case k.events == nil:
		c.forget(k)
	case k.costly == nil:
		k.costly = c.costly.PushFront(k)
	}
	if c.touch(k); closes {
		c.order.MoveToBack(k.used)
		if k.costly != nil {
			c.costly.MoveToBack(k.costly)
		}
	}
	c.shrink()
}

// touch notes that a run was used.
func (c *Cache) touch(k *kept) {
	c.order.MoveToFront(k.used)
	if k.costly != nil {
		c.costly.MoveToFront(k.costly)
	}
}

// joined returns past and window as one slice. If past is all that kept holds, kept grows in place:
// nobody else writes after its end, and those who read it hold slices that end before.
func joined(kept, past, window []schemas.Event) []schemas.Event {
	if len(kept) > 0 && len(kept) == len(past) && &kept[0] == &past[0] {
		return append(kept, window...)
	}
	return slices.Concat(past, window)
}

// shrink makes room: first the events go, then whole runs. A run without its events is still worth
// its place: its next task shows what this worker's last reply has left to be true.
func (c *Cache) shrink() {
	for c.cost > c.maxCost {
		oldest, _ := c.costly.Back().Value.(*kept)
		c.forget(oldest)
	}
	for len(c.runs) > c.maxRuns {
		oldest, _ := c.order.Back().Value.(*kept)
		c.remove(oldest)
	}
}

// forget lets go of the events of a run.
func (c *Cache) forget(k *kept) {
	if k.costly == nil {
		return
	}
	c.costly.Remove(k.costly)
	c.cost -= k.cost
	k.events, k.cost, k.costly = nil, 0, nil
	for i := range k.replies {
		k.replies[i].n, k.replies[i].bytes = 0, 0
	}
}

func (c *Cache) remove(k *kept) {
	c.forget(k)
	c.order.Remove(k.used)
	delete(c.runs, k.key)
}
