package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/droverhq/drover/schemas"
)

// lockTable is what a broker sees of the bucket of locks. Nothing is decided by it: whoever changes a lock reads its key from
// the leader and writes by compare-and-set. It tells the owners of partitions which places of their workflows have come, gone
// or moved, and it answers those who want to see the locks.
//
// It follows the bucket from its beginning, and takes what this broker itself writes or reads at once. The entries of a key are
// ordered by revision within an epoch; a bucket that was made anew begins a new one, as with the types.
type lockTable struct {
	b *Broker

	mu      sync.Mutex
	epoch   int
	seen    uint64 // last revision that the watch has brought in this epoch
	entries map[string]lockEntry
	gone    []goneLock // deleted entries, by revision; they are forgotten once the watch is past them
	owners  map[int]*partition
}

// lockEntry is a key as it stands. The record belongs to everybody: who changes it makes a copy.
type lockEntry struct {
	lock  *schemas.LockRecord // nil: nobody holds the lock or waits for it
	rev   uint64
	epoch int
	size  int // of the stored value, bytes
}

type goneLock struct {
	key string
	rev uint64
}

// put takes an entry unless a later one is known, and tells the owners. watched says that the watch has brought it.
func (t *lockTable) put(key string, e lockEntry, watched bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case watched:
		t.seen = e.rev
		defer t.prune()
	case e.rev <= t.seen:
		return // the watch has brought it, or what came of it since; the entry may be forgotten already
	}
	e.epoch = t.epoch
	have, known := t.entries[key]
	if known && have.epoch == t.epoch && have.rev >= e.rev {
		return
	}
	t.entries[key] = e
	if e.lock == nil {
		t.gone = append(t.gone, goneLock{key, e.rev})
	}
	t.tell(key, have.lock, e)
}

// prune forgets deleted entries that nothing older can follow any more. The caller holds mu.
func (t *lockTable) prune() {
	n := 0
	for _, g := range t.gone {
		if g.rev > t.seen {
			break
		}
		if e := t.entries[g.key]; e.lock == nil && e.rev == g.rev {
			delete(t.entries, g.key)
		}
		n++
	}
	t.gone = slices.Delete(t.gone, 0, n)
}

// tell posts an entry to the owners of the workflows that it names, or that the one before has named. The caller holds mu, so
// an owner learns of the entries of a key in their order.
func (t *lockTable) tell(key string, before *schemas.LockRecord, e lockEntry) {
	if len(t.owners) == 0 {
		return
	}
	told := make(map[int]bool)
	for _, r := range []*schemas.LockRecord{before, e.lock} {
		if r == nil {
			continue
		}
		for _, places := range [][]schemas.LockPlace{r.Holders, r.Waiters} {
			for i := range places {
				n := t.b.partitionOf(places[i].WorkflowID)
				p := t.owners[n]
				if p == nil || told[n] {
					continue
				}
				told[n] = true
				p.loop.post(func() { p.lockSeen(key, e) })
			}
		}
	}
}

// own tells a new owner all that there is about its workflows, and from now on what changes (P-13).
func (t *lockTable) own(p *partition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owners[p.n] = p
	for key, e := range t.entries {
		if e.lock != nil && len(p.oursIn(e.lock)) > 0 {
			p.loop.post(func() { p.lockSeen(key, e) })
		}
	}
}

func (t *lockTable) disown(p *partition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owners[p.n] == p {
		delete(t.owners, p.n)
	}
}

// get returns what is known of a key.
func (t *lockTable) get(key string) *schemas.LockRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.entries[key].lock
}

// list returns the keys and entries behind a key, in their order, as long as take wants more.
func (t *lockTable) list(after string, take func(key string, e lockEntry) bool) {
	t.mu.Lock()
	entries := maps.Clone(t.entries)
	t.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if e := entries[key]; key > after && e.lock != nil && !take(key, e) {
			return
		}
	}
}

func (t *lockTable) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch, t.seen, t.gone = t.epoch+1, 0, nil
}

func (t *lockTable) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, e := range t.entries {
		if e.epoch != t.epoch {
			delete(t.entries, key)
			t.tell(key, e.lock, lockEntry{epoch: t.epoch})
		}
	}
}

func (t *lockTable) reached(rev uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seen >= rev
}

// beginLocks reads the bucket to its end and follows it until the broker ends.
func (b *Broker) beginLocks(ctx context.Context) (*lockTable, error) {
	t := &lockTable{b: b, entries: map[string]lockEntry{}, owners: map[int]*partition{}}
	w := &bucketWatch{b: b, bucket: b.ns.BucketLocks(), holds: "locks", table: t}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// take puts what the watch brings into the table. What is no lock counts as none.
func (t *lockTable) take(key string, value []byte, rev uint64, deleted bool) {
	e := lockEntry{rev: rev, size: len(value)}
	if !deleted {
		var err error
		if e.lock, err = schemas.ParseLock(key, value); err != nil {
			t.b.o.Logger.WithError(err).WithField("key", key).Warn(noLock(err))
		}
	}
	t.put(key, e, true)
}

// noLock says what to do about a key that holds no lock. One of a later version may be held: whoever deletes it lets others in.
func noLock(err error) string {
	if errors.Is(err, schemas.ErrVersion) {
		return "a key of the bucket of locks is of another version; those who want the lock wait until this server is updated"
	}
	return "a key of the bucket of locks holds no lock; delete it, and those who want it enter anew"
}
