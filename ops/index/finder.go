package index

import (
	"hash/maphash"

	"github.com/droverhq/drover/ops/query"
)

// place is where a row is: block number · blockRows + row.
type place uint32

func at(block, row int) place { return place(block*blockRows + row) }

func (p place) block() int { return int(p / blockRows) }
func (p place) row() int   { return int(p % blockRows) }

// finder finds the place of a run: a hash table that has places and parts of hashes alone, since
// the rows have the rest. It is cut into many, so that no growth takes long.
type finder [256]shard

type shard struct {
	slots []slot
	used  int // slots that are not empty
	held  int // slots with a place
}

// slot is empty if it is 0. Else its upper half is the lower half of a hash, and the lower one is
// the place + 2, or 1 if there was one.
type slot uint64

const gone = 1

func slotOf(hash uint64, p place) slot { return slot(hash<<32 | uint64(p+2)) }

func (s slot) place() place { return place(s) - 2 }

// hash is that of the run of a row.
func (b *block) hash(row int) uint64 {
	id := b.id(row)
	return hashOf(id, b.text[query.ColumnRun].of(row), b.runs[row])
}

// hashOf is the hash of a workflow id and a run id, which is a text or packed.
func hashOf(id, run string, packed [16]byte) uint64 {
	hash := maphash.String(seed, id) * 0x9e3779b97f4a7c15
	if run != "" {
		return hash ^ maphash.String(seed, run)
	}
	return hash ^ maphash.Bytes(seed, packed[:])
}

// slot returns the slot of the place for which is says so, nil if there is none.
func (f *finder) slot(hash uint64, is func(place) bool) *slot {
	h := &f[hash>>56]
	if len(h.slots) == 0 {
		return nil
	}
	for i := h.start(hash); h.slots[i] != 0; i = h.next(i) {
		s := h.slots[i]
		if s != gone && uint64(s)>>32 == hash&(1<<32-1) && is(s.place()) {
			return &h.slots[i]
		}
	}
	return nil
}

// start is where a hash is sought first: hashes are spread over the slots as they are.
func (h *shard) start(hash uint64) int {
	return int((hash & (1<<32 - 1)) * uint64(len(h.slots)) >> 32)
}

func (h *shard) next(i int) int {
	if i++; i == len(h.slots) {
		return 0
	}
	return i
}

// add enters a place that is not there.
func (f *finder) add(hash uint64, p place) {
	h := &f[hash>>56]
	if 8*(h.used+1) > 7*len(h.slots) {
		h.grow()
	}
	h.insert(slotOf(hash, p))
}

func (h *shard) insert(s slot) {
	i := h.start(uint64(s) >> 32)
	for h.slots[i] != 0 {
		i = h.next(i)
	}
	h.slots[i] = s
	h.used++
	h.held++
}

// grow makes the table anew, with a third more slots than there are places.
func (h *shard) grow() {
	was := h.slots
	*h = shard{slots: make([]slot, 8+h.held*4/3)}
	for _, s := range was {
		if s > gone {
			h.insert(s)
		}
	}
}

// remove takes away what is in a slot of the hash.
func (f *finder) remove(hash uint64, s *slot) {
	*s = gone
	f[hash>>56].held--
}

// size is about how many bytes of memory the finder takes.
func (f *finder) size() (size int64) {
	for i := range f {
		size += 8 * int64(cap(f[i].slots))
	}
	return size
}
