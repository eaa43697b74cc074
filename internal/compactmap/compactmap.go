// Package compactmap keeps very many small entries that are found by a text: a million parked runs,
// a million alarms. What it holds is in few large pieces of memory without pointers, so the garbage
// collector has nothing to follow in them, and entries that stay do not hold down memory that they
// share with garbage. Small objects of their own did: of what 100,000 sleepers kept of a server's
// memory, a third was such holes.
//
// Invariants:
//   - An [ID] stays the same from [Map.Add] to [Map.Delete]; afterwards it may name another entry.
//   - An entry is found by its whole text: hashes only tell where to look.
//   - Of the memory for texts at most a third is of entries that are gone, and a chunk more: what
//     is left of the sparsest chunk is moved to others, at most one with each deletion. The memory
//     of numbers and values goes when a whole block of them is free; new entries take low numbers.
//   - Nothing takes longer as the map grows, but for the part of the index that is made larger: one
//     of 64, two milliseconds at a million.
//
// Values hold no pointers, or all this would be in vain; nothing checks that. One goroutine at a
// time uses a map.
//
// Considered: a Go map of packed strings. It takes 113 bytes where this takes 77, in objects that
// share their memory with garbage, and all of them are marked in each collection.
package compactmap

import (
	"hash/maphash"
	"iter"
)

// ID is the number of an entry.
type ID uint32

// MaxLen is how many entries any map takes at most. Their texts may take some 16 GiB.
const MaxLen = 1<<idBits - 1

// Map is a map from texts to values of type V, which has no pointers, and to some more bytes beside
// each. It is made by [New].
type Map[V any] struct {
	seed   maphash.Seed
	index  index
	blocks blocks[V]
	texts  texts
	n      int
	most   int
}

// New makes an empty map that takes so many entries at most: from 1 to [MaxLen].
func New[V any](most int) *Map[V] {
	return &Map[V]{seed: maphash.MakeSeed(), most: min(max(most, 1), MaxLen)}
}

// Len is how many entries there are.
func (m *Map[V]) Len() int { return m.n }

// Find gives the entry of a text.
func (m *Map[V]) Find(text string) (ID, bool) {
	if m.n == 0 {
		return 0, false
	}
	return m.index.find(maphash.String(m.seed, text),
		func(id ID) bool { return string(m.Text(id)) == text })
}

// Add makes the entry of a text that has none, with its zero value and with more bytes that stay as
// they are. It is false if the map is full.
func (m *Map[V]) Add(text string, more []byte) (ID, bool) {
	if m.n == m.most {
		return 0, false
	}
	id := m.blocks.take()
	ref, ok := m.texts.add(text, more)
	if !ok {
		m.blocks.free(id)
		return 0, false
	}
	m.blocks.set(id, ref)
	m.index.add(maphash.String(m.seed, text), id, m.hash)
	m.n++
	return id, true
}

// At is the value of an entry, which must be there. It may be used until the entry is deleted.
func (m *Map[V]) At(id ID) *V { return m.blocks.value(id) }

// Has tells whether there is an entry of a number.
func (m *Map[V]) Has(id ID) bool { return m.blocks.has(id) }

// All are the entries in the order of their numbers. None may be added or deleted meanwhile.
func (m *Map[V]) All() iter.Seq[ID] { return m.blocks.ids }

// Text is the text of an entry, which must be there. It may be read until an entry is added or
// deleted.
func (m *Map[V]) Text(id ID) []byte { return m.texts.text(m.blocks.ref(id)) }

// More is what was given to Add beside the text. It may be read until an entry is added or deleted.
func (m *Map[V]) More(id ID) []byte { return m.texts.more(m.blocks.ref(id)) }

// Delete removes an entry, which must be there.
func (m *Map[V]) Delete(id ID) {
	ref := m.blocks.ref(id)
	m.index.remove(m.hash(id), id, m.hash)
	m.blocks.free(id)
	m.n--
	m.texts.remove(ref)
	m.texts.tidy(m.moved)
}

// moved notes where the record of an entry has come to. There is one: what is not gone has its
// entry in the index.
func (m *Map[V]) moved(text []byte, from, to ref) {
	id, _ := m.index.find(maphash.Bytes(m.seed, text),
		func(id ID) bool { return m.blocks.ref(id) == from })
	m.blocks.set(id, to)
}

// hash is that of an entry's text.
func (m *Map[V]) hash(id ID) uint64 { return maphash.Bytes(m.seed, m.Text(id)) }
