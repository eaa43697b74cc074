package keyed

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/schemas"
)

// Lock is a lock as it stands. The record belongs to everybody: who changes it makes a copy. A
// lock without one is free, and nobody waits for it. Last is set only if it was read as absent.
type Lock = Entry[schemas.LockRecord]

// Table is what a broker sees of the bucket of locks. Nothing is decided by it: whoever changes a
// lock reads its key from the leader and writes by compare-and-set. It tells the owners of
// partitions which places of their workflows have come, gone or moved, and it answers those who
// want to see the locks. Its methods may be called by any goroutine.
//
// It follows the bucket from its beginning, and takes what this broker itself writes or reads at
// once. The entries of a key are ordered by revision within an epoch; a bucket that was made anew
// begins a new one.
type Table struct {
	partitionOf func(wid string) int
	warn        func(key string, err error)

	mu      sync.Mutex
	epoch   int
	seen    uint64 // last revision that the watch has brought in this epoch
	entries map[string]tableEntry
	// deleted entries, by revision; they are forgotten once the watch is past them
	gone   []goneLock
	owners map[int]Owner
}

// Owner is the owner of a partition as the table sees it.
type Owner interface {
	// Seen takes the next entry of a lock. It must not wait, and is called in the order of the
	// entries of a key.
	Seen(key string, l Lock)
}

type tableEntry struct {
	Lock
	epoch int
}

type goneLock struct {
	key string
	rev uint64
}

// NewTable returns an empty table. It warns of keys that hold no lock, which count as free.
func NewTable(partitionOf func(wid string) int, warn func(key string, err error)) *Table {
	return &Table{
		partitionOf: partitionOf, warn: warn,
		entries: map[string]tableEntry{}, owners: map[int]Owner{},
	}
}

// Put takes what this broker has written or read, unless a later entry is known.
func (t *Table) Put(key string, l Lock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.Revision > t.seen { // else the watch has brought it, or what came of it since
		t.put(key, l)
	}
}

// Take takes what the watch brings.
func (t *Table) Take(key string, value []byte, rev uint64, deleted bool) {
	l := Lock{Revision: rev, Size: len(value)}
	if !deleted {
		var err error
		if l.Record, err = schemas.ParseLock(key, value); err != nil {
			t.warn(key, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = rev
	t.put(key, l)
	t.prune()
}

// put takes an entry unless a later one is known, and tells the owners. The caller holds mu.
func (t *Table) put(key string, l Lock) {
	have, known := t.entries[key]
	if known && have.epoch == t.epoch && have.Revision >= l.Revision {
		return
	}
	t.entries[key] = tableEntry{l, t.epoch}
	if l.Record == nil {
		t.gone = append(t.gone, goneLock{key, l.Revision})
	}
	t.tell(key, have.Record, l)
}

// prune forgets deleted entries that nothing older can follow any more. The caller holds mu.
func (t *Table) prune() {
	n := 0
	for _, g := range t.gone {
		if g.rev > t.seen {
			break
		}
		if e := t.entries[g.key]; e.Record == nil && e.Revision == g.rev {
			delete(t.entries, g.key)
		}
		n++
	}
	t.gone = slices.Delete(t.gone, 0, n)
}

// tell tells an entry to the owners of the workflows that it names, or that the one before has
// named. The caller holds mu, so an owner learns of the entries of a key in their order.
func (t *Table) tell(key string, before *schemas.LockRecord, l Lock) {
	if len(t.owners) == 0 {
		return
	}
	told := make(map[int]bool)
	for _, r := range []*schemas.LockRecord{before, l.Record} {
		for place := range places(r) {
			n := t.partitionOf(place.WorkflowID)
			if o := t.owners[n]; o != nil && !told[n] {
				told[n] = true
				o.Seen(key, l)
			}
		}
	}
}

// Own tells the new owner of a partition all that there is about its workflows, and from now on
// what changes (P-13).
func (t *Table) Own(n int, o Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners[n] = o
	for key, e := range t.entries {
		for place := range places(e.Record) {
			if t.partitionOf(place.WorkflowID) == n {
				o.Seen(key, e.Lock)
				break
			}
		}
	}
}

// Disown tells an owner nothing more.
func (t *Table) Disown(n int, o Owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owners[n] == o {
		delete(t.owners, n)
	}
}

// Get returns what is known of a lock; nil if it is free.
func (t *Table) Get(key string) *schemas.LockRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[key].Record
}

// All returns the locks after a key that are not free, in the order of their keys.
func (t *Table) All(after string) iter.Seq2[string, Lock] {
	return func(yield func(string, Lock) bool) {
		t.mu.Lock()
		entries := maps.Clone(t.entries)
		t.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if e := entries[key]; key > after && e.Record != nil && !yield(key, e.Lock) {
				return
			}
		}
	}
}

// Begin starts an epoch. Until End the old entries count.
func (t *Table) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.seen, t.gone = t.epoch+1, 0, nil
}

// End drops what the epoch has not met.
func (t *Table) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, e := range t.entries {
		if e.epoch != t.epoch {
			delete(t.entries, key)
			t.tell(key, e.Record, Lock{})
		}
	}
}

// Reached tells whether the watch has brought a revision of this epoch.
func (t *Table) Reached(rev uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen >= rev
}

// places returns the holders and then the waiters of a lock, which may be nil.
func places(r *schemas.LockRecord) iter.Seq[*schemas.LockPlace] {
	return func(yield func(*schemas.LockPlace) bool) {
		if r == nil {
			return
		}
		for _, places := range [][]schemas.LockPlace{r.Holders, r.Waiters} {
			for i := range places {
				if !yield(&places[i]) {
					return
				}
			}
		}
	}
}
