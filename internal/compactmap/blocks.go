package compactmap

import "math/bits"

// blockLen is how many numbers a block holds.
const blockLen = 256

// blocks hold what is found by a number: where its text is, and its value.
type blocks[V any] struct {
	all []*block[V] // nil where all numbers are free
	low int         // no block before this one has a free number
}

type block[V any] struct {
	n      int
	taken  [blockLen / 64]uint64
	refs   []ref
	values []V
}

// take gives the lowest free number, or nearly: of the first block that has one.
func (b *blocks[V]) take() ID {
	for b.low < len(b.all) && b.all[b.low] != nil && b.all[b.low].n == blockLen {
		b.low++
	}
	if b.low == len(b.all) {
		b.all = append(b.all, nil)
	}
	k := b.all[b.low]
	if k == nil {
		k = &block[V]{refs: make([]ref, blockLen), values: make([]V, blockLen)}
		b.all[b.low] = k
	}
	k.n++
	for w, word := range k.taken {
		if word != ^uint64(0) {
			bit := bits.TrailingZeros64(^word)
			k.taken[w] |= 1 << bit
			return ID(b.low*blockLen + w*64 + bit)
		}
	}
	panic("dense: a block that is not full has no free number")
}

// free gives a number back.
func (b *blocks[V]) free(id ID) {
	i, at := int(id/blockLen), id%blockLen
	k := b.all[i]
	k.taken[at/64] &^= 1 << (at % 64)
	var none V
	k.values[at] = none
	b.low = min(b.low, i)
	if k.n--; k.n > 0 || i == 0 { // the first one stays, for maps with an entry now and then
		return
	}
	b.all[i] = nil
	for len(b.all) > 0 && b.all[len(b.all)-1] == nil {
		b.all = b.all[:len(b.all)-1]
	}
	b.low = min(b.low, len(b.all))
}

func (b *blocks[V]) has(id ID) bool {
	i, at := int(id/blockLen), id%blockLen
	return i < len(b.all) && b.all[i] != nil && b.all[i].taken[at/64]&(1<<(at%64)) != 0
}

// ids yields the numbers that are taken, the lowest first.
func (b *blocks[V]) ids(yield func(ID) bool) {
	for i, k := range b.all {
		if k == nil {
			continue
		}
		for w, word := range k.taken {
			for ; word != 0; word &= word - 1 {
				if !yield(ID(i*blockLen + w*64 + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

func (b *blocks[V]) ref(id ID) ref     { return b.all[id/blockLen].refs[id%blockLen] }
func (b *blocks[V]) set(id ID, to ref) { b.all[id/blockLen].refs[id%blockLen] = to }
func (b *blocks[V]) value(id ID) *V    { return &b.all[id/blockLen].values[id%blockLen] }
