// Package idset remembers which strings were added, in some two bytes for each. A partition keeps
// the workflow ids of its history in it, so that it need not look for runs of an id that was never
// used.
//
// Invariants:
//   - What was added is always found. What was not is found too, for about one of a hundred
//     strings: whoever is told yes asks somebody who knows.
//   - It takes no more memory than the bound that it was made with allows. Above that it finds
//     everything.
//
// Considered: the strings themselves, or 8 bytes of a hash of each. Both are exact enough, and ten
// and four times as large.
package idset

import "hash/maphash"

const (
	firstRoom = 1024
	// bitsEach and probes make one of some 1,700 strings found in vain in each layer that is full.
	bitsEach = 16
	probes   = 8
)

// Set is a set of strings. It is made by [New]; one goroutine uses it.
type Set struct {
	seed   maphash.Seed
	layers []layer
	left   int // how many may still be added
}

// layer is a Bloom filter. Each has twice the room of the one before.
type layer struct {
	bits []uint64
	room int // how many strings it still takes
}

// New makes a set that takes up to most strings, at least one. It finds everything once there are
// more.
func New(most int) *Set {
	return &Set{seed: maphash.MakeSeed(), left: max(most, 1)}
}

// Add adds s.
func (t *Set) Add(s string) {
	h := maphash.String(t.seed, s)
	if t.left == 0 || t.has(h) {
		return
	}
	if t.left--; t.left == 0 {
		t.layers = nil
		return
	}
	last := len(t.layers) - 1
	if last < 0 || t.layers[last].room == 0 {
		room := firstRoom << len(t.layers)
		t.layers = append(t.layers, layer{bits: make([]uint64, room*bitsEach/64), room: room})
		last++
	}
	l := &t.layers[last]
	l.room--
	for i := range l.places(h) {
		l.bits[i/64] |= 1 << (i % 64)
	}
}

// Has tells whether s may have been added. If not it was not.
func (t *Set) Has(s string) bool {
	return t.left == 0 || t.has(maphash.String(t.seed, s))
}

func (t *Set) has(h uint64) bool {
	for i := range t.layers {
		if t.layers[i].has(h) {
			return true
		}
	}
	return false
}

func (l *layer) has(h uint64) bool {
	for i := range l.places(h) {
		if l.bits[i/64]&(1<<(i%64)) == 0 {
			return false
		}
	}
	return true
}

// places yields the bits of a hash: its halves are the first and the distance to the next.
func (l *layer) places(h uint64) func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		// The number of bits is a power of two, so an odd distance meets each bit before any again.
		mask, step := uint64(len(l.bits))*64-1, h>>32|1
		for range probes {
			if !yield(h & mask) {
				return
			}
			h += step
		}
	}
}
