package repeats

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// What clients send is remembered for ten minutes, whatever came in between (P-6). The state of a
// run has the latest ids, which is enough for most. A busy run forgets one in a tenth of a second.
// For such a run its owner makes an index of what the history says: hashes of ids, and in which
// record each stands. It makes it when a request with an id comes that the run may have forgotten,
// and adds what comes from then on. Nobody else pays anything, and a take-over reads nothing for
// it.
//
// What a hash finds is read in its record. A false hit costs a read, and no request is taken for
// another one.

const (
	// RememberFor is how long ids are remembered at least.
	RememberFor = schemas.Duration(10 * time.Minute)
	// requestsBytes is what the index of a partition may take, and requestBytes what an id may: 16
	// in its block, whose memory may be twice as much as it has ids, and a share of what each chain
	// takes besides, which is counted as chainIDs.
	requestsBytes = 16 << 20
	requestBytes  = 40
	chainIDs      = 16
	// fewIDs is how many a chain has at most that is dropped whole where there is no room. It is
	// read again when it is needed.
	fewIDs = 64
)

// They bound the index of a partition. Tests have less of both.
var (
	// MostIDs is how much it has: ids, and chainIDs for each chain.
	MostIDs = requestsBytes / requestBytes
	// BlockIDs is how many ids of a chain come and go together.
	BlockIDs = 2048
)

// index is the index of the request ids of a partition.
type index struct {
	most, block int
	seed        maphash.Seed
	of          map[string]*chain // by workflow id
	n           int               // as most counts
}

// chain is the index of a chain of runs.
type chain struct {
	first  string     // run
	blocks []*idBlock // the oldest first; the last takes what comes
	n      int        // ids
	// from is since when nothing is missing, but for want of room; 0 if nothing at all. cut is when
	// the latest was recorded that is missing for want of room; 0 if none is.
	from, cut schemas.Timestamp
	dropped   bool
}

// idBlock are ids that were recorded one after another. One that is full is sorted by the hashes.
type idBlock struct {
	ids    []placedID
	last   schemas.Timestamp // when the latest was recorded
	sorted bool
}

// placedID is an id, by its hash, and the record that it stands in, by its sequence in the history.
type placedID struct{ hash, sequence uint64 }

// newIndex returns an empty index. most and block are as [MostIDs] and [BlockIDs].
func newIndex(most, block int) *index {
	return &index{
		most: most, block: block, seed: maphash.MakeSeed(), of: make(map[string]*chain),
	}
}

// newChain returns an index without ids of a chain, by its first run. from is since when nothing is
// missing; 0 if nothing at all. cut is when the latest was recorded that there was no room for; 0
// if there was room for all.
func newChain(first string, from, cut schemas.Timestamp) *chain {
	return &chain{first: first, from: from, cut: cut}
}

// hash is the hash of an id in this index.
func (x *index) hash(id execution.RequestID) uint64 { return maphash.Comparable(x.seed, id) }

// find returns the index of a chain of a workflow id, by its first run; nil if there is none. That
// of another chain is dropped: whoever sends something again to a workflow that was started anew
// means it.
func (x *index) find(wid, first string) *chain {
	if len(x.of) == 0 {
		return nil
	}
	m := x.of[wid]
	if m != nil && m.first != first {
		x.drop(wid)
		return nil
	}
	return m
}

// enter puts the index of a chain in place of that which its workflow id has.
func (x *index) enter(wid string, m *chain) {
	x.drop(wid)
	x.of[wid] = m
	x.n += chainIDs
}

// drop drops the index of a workflow id, if there is one.
func (x *index) drop(wid string) {
	if m := x.of[wid]; m != nil {
		m.dropped = true
		x.n -= chainIDs + m.n
		delete(x.of, wid)
	}
}

// add notes in which record an id of a chain stands, unless the chain was dropped.
func (x *index) add(m *chain, id placedID, at schemas.Timestamp) {
	if m.dropped {
		return
	}
	last := len(m.blocks) - 1
	if last < 0 || m.blocks[last].sorted {
		m.blocks = append(m.blocks, &idBlock{})
		last++
	}
	b := m.blocks[last]
	b.ids, b.last = append(b.ids, id), max(b.last, at)
	if len(b.ids) == x.block {
		slices.SortFunc(b.ids, func(a, b placedID) int { return cmp.Compare(a.hash, b.hash) })
		b.sorted = true
	}
	m.n++
	if x.n++; x.n > x.most {
		x.shrink()
	}
}

// covers tells whether the index of a chain tells of all that was recorded after an instant, or has
// had no room for some of it.
func (m *chain) covers(since schemas.Timestamp) bool { return m.cut != 0 || m.from <= since }

// place is the record that an id with a hash stands in, if one does.
func (m *chain) place(hash uint64) (sequence uint64, ok bool) {
	for _, b := range slices.Backward(m.blocks) {
		var i int
		if b.sorted {
			i, ok = slices.BinarySearchFunc(b.ids, hash, func(id placedID, hash uint64) int {
				return cmp.Compare(id.hash, hash)
			})
		} else {
			i = slices.IndexFunc(b.ids, func(id placedID) bool { return id.hash == hash })
			ok = i >= 0
		}
		if ok {
			return b.ids[i].sequence, true
		}
	}
	return 0, false
}

// shrink makes room: of the chain that has most the oldest block goes. If all have few ids an
// eighth of the chains goes.
func (x *index) shrink() {
	var most *chain
	for _, m := range x.of {
		if most == nil || m.n > most.n {
			most = m
		}
	}
	if most.n > fewIDs {
		most.cut = max(most.cut, most.blocks[0].last)
		x.dropBlock(most)
		return
	}
	for wid := range x.of {
		if x.n <= x.most/8*7 {
			break
		}
		x.drop(wid)
	}
}

func (x *index) dropBlock(m *chain) {
	n := len(m.blocks[0].ids)
	m.blocks = slices.Delete(m.blocks, 0, 1)
	m.n -= n
	x.n -= n
}

// age takes out what was recorded before an instant, and chains of which nothing is left.
func (x *index) age(before schemas.Timestamp) {
	for wid, m := range x.of {
		for len(m.blocks) > 0 && m.blocks[0].last < before {
			x.dropBlock(m)
		}
		if m.from = max(m.from, before); m.n == 0 {
			x.drop(wid)
		}
	}
}

// since is since when the ids of a workflow are remembered, if there was no room for all of the
// last ten minutes; else 0.
func (x *index) since(wid string, now schemas.Timestamp) schemas.Timestamp {
	if m := x.of[wid]; m != nil && m.cut > now.Add(-RememberFor) {
		return m.cut
	}
	return 0
}
