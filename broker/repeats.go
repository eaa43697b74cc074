package broker

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/schemas"
)

// What clients send is remembered for ten minutes, whatever came in between (P-6). The state of a run has the latest ids, which is
// enough for most. A busy run forgets one in a tenth of a second. For such a run its owner makes an index of what the history says:
// hashes of ids, and in which record each stands. It makes it when a request with an id comes that the run may have forgotten
// (remembered.go), and adds what comes from then on. Nobody else pays anything, and a take-over reads nothing for it.
//
// What a hash finds is read in its record. A false hit costs a read, and no request is taken for another one.

const (
	// rememberFor is how long ids are remembered at least.
	rememberFor = schemas.Duration(10 * time.Minute)
	// repeatsBytes is what the index of a partition may take, and repeatBytes what an id may: 16 in its block, whose memory may
	// be twice as much as it has ids, and a share of what each chain takes besides, which is counted as chainIDs.
	repeatsBytes = 16 << 20
	repeatBytes  = 40
	chainIDs     = 16
	// fewIDs is how many a chain has at most that is dropped whole where there is no room. It is read again when it is needed.
	fewIDs = 64
)

// mostRemembered is how much the index of a partition has: ids, and chainIDs for each chain. blockIDs is how many ids of a chain
// come and go together. Tests have less of both.
var (
	mostRemembered = repeatsBytes / repeatBytes
	blockIDs       = 2048
)

// repeats is the index of a partition. It is made by newRepeats; the loop uses it.
type repeats struct {
	seed maphash.Seed
	of   map[string]*remembered // by workflow id
	n    int                    // see mostRemembered
}

// remembered is the index of a chain of runs.
type remembered struct {
	chain  string     // its first run
	blocks []*idBlock // the oldest first; the last takes what comes
	n      int        // ids
	// from is since when nothing is missing, but for want of room; 0 if nothing at all. cut is when the latest was recorded that
	// is missing for want of room; 0 if none is.
	from, cut schemas.Timestamp
	dropped   bool
}

// idBlock are ids that were recorded one after another. One that is full is sorted by the hashes.
type idBlock struct {
	ids  []placedID
	last schemas.Timestamp // when the latest was recorded
}

// placedID is an id, by its hash, and the record that it stands in, by its sequence in the history.
type placedID struct{ hash, sequence uint64 }

func newRepeats() repeats {
	return repeats{seed: maphash.MakeSeed(), of: make(map[string]*remembered)}
}

func (x *repeats) hash(id execution.RequestID) uint64 { return maphash.Comparable(x.seed, id) }

// find returns the index of a chain of a workflow id; nil if there is none. That of another chain is dropped: whoever sends
// something again to a workflow that was started anew means it.
func (x *repeats) find(wid, chain string) *remembered {
	if len(x.of) == 0 {
		return nil
	}
	m := x.of[wid]
	if m != nil && m.chain != chain {
		x.drop(wid)
		return nil
	}
	return m
}

// enter puts the index of a chain in place of that which its workflow id has.
func (x *repeats) enter(wid string, m *remembered) {
	x.drop(wid)
	x.of[wid] = m
	x.n += chainIDs
}

func (x *repeats) drop(wid string) {
	if m := x.of[wid]; m != nil {
		m.dropped = true
		x.n -= chainIDs + m.n
		delete(x.of, wid)
	}
}

// add notes in which record an id of a chain stands, unless the chain was dropped.
func (x *repeats) add(m *remembered, id placedID, at schemas.Timestamp) {
	if m.dropped {
		return
	}
	last := len(m.blocks) - 1
	if last < 0 || len(m.blocks[last].ids) == blockIDs {
		m.blocks = append(m.blocks, &idBlock{})
		last++
	}
	b := m.blocks[last]
	b.ids, b.last = append(b.ids, id), max(b.last, at)
	if len(b.ids) == blockIDs {
		slices.SortFunc(b.ids, func(a, b placedID) int { return cmp.Compare(a.hash, b.hash) })
	}
	m.n++
	if x.n++; x.n > mostRemembered {
		x.shrink()
	}
}

// place is the record that an id with a hash stands in, if one does.
func (m *remembered) place(hash uint64) (sequence uint64, ok bool) {
	for _, b := range slices.Backward(m.blocks) {
		var i int
		if len(b.ids) == blockIDs {
			i, ok = slices.BinarySearchFunc(b.ids, hash, func(id placedID, hash uint64) int { return cmp.Compare(id.hash, hash) })
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

// shrink makes room: of the chain that has most the oldest block goes. If all have few ids an eighth of the chains goes.
func (x *repeats) shrink() {
	var most *remembered
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
		if x.n <= mostRemembered/8*7 {
			break
		}
		x.drop(wid)
	}
}

func (x *repeats) dropBlock(m *remembered) {
	n := len(m.blocks[0].ids)
	m.blocks = slices.Delete(m.blocks, 0, 1)
	m.n -= n
	x.n -= n
}

// age takes out what was recorded before an instant, and chains of which nothing is left.
func (x *repeats) age(before schemas.Timestamp) {
	for wid, m := range x.of {
		for len(m.blocks) > 0 && m.blocks[0].last < before {
			x.dropBlock(m)
		}
		if m.from = max(m.from, before); m.n == 0 {
			x.drop(wid)
		}
	}
}

// ageRepeats forgets, now and then, what is older than ten minutes. In the first ten minutes of a term nothing is: what waits in the
// logs may be as old as the time without an owner was long.
func (p *partition) ageRepeats() {
	if p.ticks > p.inTicks(rememberFor.Std()) && p.ticks%p.inTicks(time.Minute) == 0 {
		p.repeats.age(p.now().Add(-rememberFor - schemas.Duration(clockSkew)))
	}
}

// since is since when the ids of a workflow are remembered, if there was no room for all of the last ten minutes; else 0.
func (x *repeats) since(wid string, now schemas.Timestamp) schemas.Timestamp {
	if m := x.of[wid]; m != nil && m.cut > now.Add(-rememberFor) {
		return m.cut
	}
	return 0
}
