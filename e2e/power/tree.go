package power

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// Mode says which changes of names survive a cut.
type Mode int

// The modes. Data survives in both only if its file was synced.
const (
	// Journal commits every change of a name so far with the sync of any file or folder.
	Journal Mode = iota + 1
	// Strict commits the changes of a folder with its own sync only.
	Strict
)

// The kernel's own write-back, as Linux has it: vm.dirty_expire_centisecs and the commit interval
// of ext4.
const (
	namesFlushed = 5 * time.Second
	dataFlushed  = 30 * time.Second
)

// object is a file or a folder. What programs see is in data and entries, what a cut leaves in
// durable and saved.
type object struct {
	number uint64
	folder bool
	target string // of a symbolic link
	mode   uint32
	mtime  time.Time

	data    []byte
	durable []byte
	pending []write // what data has and durable has not, in order

	entries map[string]*object
	saved   map[string]*object
}

// write is one that was not synced.
type write struct {
	offset int64
	data   []byte
	at     time.Time
}

// change is one of a name or of a size, on its way through the journal.
type change struct {
	folders [2]*object // whose sync commits it in mode Strict; the second may be nil
	file    *object    // a truncated one
	apply   func()
	at      time.Time
}

// tree is the disk without its mount. It is not safe for concurrent use.
type tree struct {
	mode    Mode
	root    *object
	next    uint64
	journal []change
	now     func() time.Time
	syncs   int
}

func newTree(mode Mode) *tree {
	t := &tree{mode: mode, now: time.Now}
	t.root = t.object(true, 0o755)
	return t
}

func (t *tree) object(folder bool, mode uint32) *object {
	t.next++
	o := &object{number: t.next, folder: folder, mode: mode, mtime: t.now()}
	if folder {
		o.entries, o.saved = map[string]*object{}, map[string]*object{}
	}
	return o
}

func (t *tree) record(c change) {
	c.at = t.now()
	t.journal = append(t.journal, c)
}

// link gives an object a name; one that had it loses it.
func (t *tree) link(dir *object, name string, o *object) {
	dir.entries[name], dir.mtime = o, t.now()
	t.record(change{folders: [2]*object{dir}, apply: func() { dir.saved[name] = o }})
}

func (t *tree) unlink(dir *object, name string) {
	delete(dir.entries, name)
	dir.mtime = t.now()
	t.record(change{folders: [2]*object{dir}, apply: func() { delete(dir.saved, name) }})
}

// rename is one change: a cut finds the old name or the new one.
func (t *tree) rename(from *object, name string, to *object, newName string) {
	o := from.entries[name]
	delete(from.entries, name)
	to.entries[newName] = o
	t.record(change{folders: [2]*object{from, to}, apply: func() {
		delete(from.saved, name)
		to.saved[newName] = o
	}})
}

func (t *tree) write(o *object, offset int64, data []byte) {
	w := write{offset: offset, data: append([]byte(nil), data...), at: t.now()}
	o.data, o.mtime = put(o.data, w), w.at
	o.pending = append(o.pending, w)
}

// truncate is a change of the journal too: it can become durable before the data that was written
// after it.
func (t *tree) truncate(o *object, size int64) {
	o.data, o.mtime = resize(o.data, size), t.now()
	kept := o.pending[:0]
	for _, w := range o.pending {
		if w.offset < size {
			w.data = w.data[:min(int64(len(w.data)), size-w.offset)]
			kept = append(kept, w)
		}
	}
	o.pending = kept
	t.record(
		change{file: o, apply: func() { o.durable = o.durable[:min(int64(len(o.durable)), size)] }})
}

// sync makes an object durable, and what the mode gives with it.
func (t *tree) sync(o *object) {
	t.syncs++
	t.commit(func(c *change) bool {
		return t.mode == Journal || c.file == o || c.folders[0] == o ||
			c.folders[1] == o && o != nil
	})
	o.flush(len(o.pending))
}

// commit applies the changes that are wanted and forgets them.
func (t *tree) commit(wanted func(*change) bool) {
	kept := t.journal[:0]
	for i := range t.journal {
		if c := &t.journal[i]; wanted(c) {
			c.apply()
		} else {
			kept = append(kept, *c)
		}
	}
	clear(t.journal[len(kept):])
	t.journal = kept
}

// flush makes the first n pending writes durable.
func (o *object) flush(n int) {
	for _, w := range o.pending[:n] {
		o.durable = put(o.durable, w)
	}
	if o.pending = o.pending[n:]; len(o.pending) > 0 {
		return
	}
	o.pending = nil
	if len(o.durable) < len(o.data) {
		// made longer by truncate: a hole at the end
		o.durable = resize(o.durable, int64(len(o.data)))
	}
}

// cut leaves what is durable, and of the rest what dice and the kernel's clock have written
// already. Without dice that is what the clock says alone.
func (t *tree) cut(dice *rand.Rand) {
	now := t.now()
	old := 0
	for old < len(t.journal) && now.Sub(t.journal[old].at) >= namesFlushed {
		old++
	}
	if dice != nil && dice.IntN(2) == 0 {
		old += dice.IntN(len(t.journal) - old + 1)
	}
	for i := range old {
		t.journal[i].apply()
	}
	t.journal = nil
	t.root.restore(map[*object]bool{}, dice, now)
}

// restore makes the durable side of an object the visible one.
func (o *object) restore(done map[*object]bool, dice *rand.Rand, now time.Time) {
	if done[o] {
		return
	}
	done[o] = true
	if !o.folder {
		o.settle(dice, now)
		o.data, o.pending = append([]byte(nil), o.durable...), nil
		return
	}
	o.entries = make(map[string]*object, len(o.saved))
	for _, name := range slices.Sorted(maps.Keys(o.saved)) {
		// in an order, so that the dice fall the same again
		o.saved[name].restore(done, dice, now)
		o.entries[name] = o.saved[name]
	}
}

// settle decides what became of the writes that nobody synced.
func (o *object) settle(dice *rand.Rand, now time.Time) {
	old := 0
	for old < len(o.pending) && now.Sub(o.pending[old].at) >= dataFlushed {
		old++
	}
	o.flush(old)
	if dice == nil || len(o.pending) == 0 {
		return
	}
	switch dice.IntN(4) {
	case 0: // a prefix
		o.flush(dice.IntN(len(o.pending) + 1))
	case 1: // a prefix, and the next write torn
		n := dice.IntN(len(o.pending))
		next := o.pending[n]
		o.flush(n)
		next.data = next.data[:dice.IntN(len(next.data)+1)]
		o.durable = put(o.durable, next)
	case 2: // one from the middle without those before it: a hole
		o.durable = put(o.durable, o.pending[dice.IntN(len(o.pending))])
	}
}

// put writes into b, which grows as needed; a hole is zero.
func put(b []byte, w write) []byte {
	if end := w.offset + int64(len(w.data)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[w.offset:], w.data)
	return b
}

// resize cuts b or makes it longer with zeros.
func resize(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size]
	}
	if size <= int64(cap(b)) {
		n := len(b)
		b = b[:size]
		clear(b[n:])
		return b
	}
	grown := make([]byte, size, max(size+size/2, 4096))
	copy(grown, b)
	return grown
}
