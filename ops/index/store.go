package index

import (
	"slices"
	"strings"
	"sync"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// MaxNames is how many names of attributes a store keeps. A name stays as long as the store.
const MaxNames = 64

// Store holds the rows of one partition. It may be used by several goroutines.
type Store struct {
	partition int

	writing sync.Mutex   // held by who changes anything
	reading sync.RWMutex // and also while what readers see changes
	blocks  []*block     // nil: the number is free
	filling int          // the block that gets new rows; -1: none
	find    finder
	names   []string // of attributes, by their numbers
	stats   Stats
}

// Stats are figures about a store.
type Stats struct {
	Rows int
	// Dropped is how many rows of closed runs have left to save memory. The last of them closed at
	// DroppedUntil.
	Dropped      int64
	DroppedUntil schemas.Timestamp
	// Refused has names of attributes for which there was no room, as many as are kept.
	Refused []string
}

// New returns a store without rows.
func New(partition int) *Store { return &Store{partition: partition, filling: -1} }

// Partition is the one whose runs it holds.
func (s *Store) Partition() int { return s.partition }

// Put inserts the row of a run, or writes over it. It does nothing, and returns false, if the row
// that is there is of a later record, or if this one has not both ids. It keeps nothing of r.
func (s *Store) Put(r *query.Row) bool {
	if r.WorkflowID == "" || r.Run == "" {
		return false
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	hash, slot := s.seek(r.WorkflowID, r.Run)
	if slot != nil {
		p := slot.place()
		b := s.blocks[p.block()]
		if b.sequence[p.row()] > r.Sequence {
			return false
		}
		s.reading.Lock()
		defer s.reading.Unlock()
		s.name(r)
		b.set(p.row(), r, s.names)
		return true
	}
	s.reading.Lock()
	defer s.reading.Unlock()
	s.name(r)
	if s.filling >= 0 && s.blocks[s.filling].n == blockRows {
		s.blocks[s.filling].shrink()
		s.filling = -1
	}
	if s.filling < 0 {
		s.filling = s.free()
		s.place(s.filling, &block{})
	}
	row := s.blocks[s.filling].add(r, s.names)
	s.find.add(hash, at(s.filling, row))
	s.stats.Rows++
	return true
}

// Delete takes the row of a run away. It returns false if there is none.
func (s *Store) Delete(workflowID, run string) bool {
	s.writing.Lock()
	defer s.writing.Unlock()
	hash, slot := s.seek(workflowID, run)
	if slot == nil {
		return false
	}
	p := slot.place()
	s.reading.Lock()
	s.take(p, hash, slot)
	s.reading.Unlock()
	s.condense(p.block())
	return true
}

// take takes a row away, which is found by the slot.
func (s *Store) take(p place, hash uint64, slot *slot) {
	s.find.remove(hash, slot)
	s.blocks[p.block()].remove(p.row())
	s.stats.Rows--
}

// Get returns the row of a run.
func (s *Store) Get(workflowID, run string) (query.Row, bool) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	_, slot := s.seek(workflowID, run)
	if slot == nil {
		return query.Row{}, false
	}
	p := slot.place()
	return *s.row(s.blocks[p.block()], p.row()), true
}

// Stats returns the figures.
func (s *Store) Stats() Stats {
	s.reading.RLock()
	defer s.reading.RUnlock()
	stats := s.stats
	stats.Refused = slices.Clone(stats.Refused)
	return stats
}

// Len is how many rows there are.
func (s *Store) Len() int { return s.Stats().Rows }

// Bytes is about how many bytes of memory the store takes.
func (s *Store) Bytes() int64 {
	s.reading.RLock()
	defer s.reading.RUnlock()
	size := s.find.size()
	for _, b := range s.blocks {
		if b != nil {
			size += b.size()
		}
	}
	return size
}

// All goes through all rows, in no order. It holds no lock while the caller has a row.
func (s *Store) All(yield func(*query.Row) bool) {
	for _, b := range s.list() {
		for row := range blockRows {
			s.reading.RLock()
			var r *query.Row
			if b.live.has(row) {
				r = s.row(b, row)
			}
			s.reading.RUnlock()
			if r != nil && !yield(r) {
				return
			}
		}
	}
}

// list returns the blocks as they are now.
func (s *Store) list() []*block {
	s.reading.RLock()
	defer s.reading.RUnlock()
	return slices.DeleteFunc(slices.Clone(s.blocks), func(b *block) bool { return b == nil })
}

// row is a row of a block, whole.
func (s *Store) row(b *block, row int) *query.Row {
	r := b.row(row, s.names)
	r.Partition = s.partition
	return r
}

// seek finds the slot of a run, nil if it has no row, and returns its hash.
func (s *Store) seek(workflowID, run string) (hash uint64, slot *slot) {
	pack, ok := packed(run)
	if ok {
		run = ""
	}
	return s.seekPacked(workflowID, run, pack)
}

// seekPacked is seek of a run id as blocks have it.
func (s *Store) seekPacked(workflowID, run string, pack [16]byte) (hash uint64, slot *slot) {
	hash = hashOf(workflowID, run, pack)
	return hash, s.find.slot(hash, func(p place) bool {
		b, row := s.blocks[p.block()], p.row()
		return b.runs[row] == pack && b.text[query.ColumnRun].of(row) == run &&
			b.id(row) == workflowID
	})
}

// name gives numbers to the names of a row's attributes, as long as there are any.
func (s *Store) name(r *query.Row) {
	for name, v := range r.Attributes {
		switch {
		case v == "" || slices.Contains(s.names, name):
		case len(s.names) < MaxNames:
			s.names = append(s.names, strings.Clone(name))
		case len(s.stats.Refused) < MaxNames && !slices.Contains(s.stats.Refused, name):
			s.stats.Refused = append(s.stats.Refused, strings.Clone(name))
		}
	}
}

// free is a number that no block has.
func (s *Store) free() int {
	if n := slices.Index(s.blocks, nil); n >= 0 {
		return n
	}
	return len(s.blocks)
}

// place puts a block under a free number.
func (s *Store) place(n int, b *block) {
	if n == len(s.blocks) {
		s.blocks = append(s.blocks, nil)
	}
	s.blocks[n] = b
}
