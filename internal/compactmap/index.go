package compactmap

const (
	// parts is how many tables the index is: each grows by itself, so that growing holds nobody up
	// for long.
	parts = 64
	// fewest is the room of the smallest table.
	fewest = 8
)

// index finds numbers by hashes: open addressing with linear probing. A number stands at or after
// the place that its hash says, its home, with no empty place between; removing closes the gap, so
// nothing is marked as gone.
//
// Beside each number stands how far it is from its home. A number that is as far from a home as it
// says is the only kind that can have its hash, so hardly any other is looked at; and what may move
// into a gap is known without its hash, which takes reading its text. Considered: pieces of the
// hashes. They spare as many looks, but not the hashes of all that stands after a gap.
type index [parts]table

// table holds places.
type table struct {
	places []place
	n      int
}

// place is a number plus one, and above it how far it is from its home, [faraway] if it is that or
// more. 0 is an empty place.
type place uint32

const (
	idBits  = 26
	faraway = 1<<(32-idBits) - 1
)

func placeOf(id ID, far int) place { return place(min(far, faraway)<<idBits | int(id+1)) }

func (p place) id() ID   { return ID(p&(1<<idBits-1)) - 1 }
func (p place) far() int { return int(p >> idBits) }

// home is where a number of this hash belongs. Tables are of any size, so the hash is scaled; its
// lowest bits say which table.
func (t *table) home(h uint64) int { return int(h >> 32 * uint64(len(t.places)) >> 32) }

func (t *table) after(i int) int {
	if i++; i == len(t.places) {
		return 0
	}
	return i
}

// distance is how far a place is after another one, which may be near the end of the table.
func (t *table) distance(from, to int) int {
	if to < from {
		to += len(t.places)
	}
	return to - from
}

func (x *index) table(h uint64) *table { return &x[h%parts] }

// find gives the number at the hash for which same is true.
func (x *index) find(h uint64, same func(ID) bool) (ID, bool) {
	t := x.table(h)
	if t.n == 0 {
		return 0, false
	}
	for i, far := t.home(h), 0; t.places[i] != 0; i, far = t.after(i), far+1 {
		if p := t.places[i]; p.far() == min(far, faraway) && same(p.id()) {
			return p.id(), true
		}
	}
	return 0, false
}

// add adds a number that is not there.
func (x *index) add(h uint64, id ID, hash func(ID) uint64) {
	t := x.table(h)
	if t.n >= len(t.places)/3*2 {
		t.resize(max(len(t.places)/2*3, fewest), hash)
	}
	t.put(h, id)
	t.n++
}

func (t *table) put(h uint64, id ID) {
	i, far := t.home(h), 0
	for t.places[i] != 0 {
		i, far = t.after(i), far+1
	}
	t.places[i] = placeOf(id, far)
}

// remove removes a number that is there.
func (x *index) remove(h uint64, id ID, hash func(ID) uint64) {
	t := x.table(h)
	gap := t.home(h)
	for t.places[gap].id() != id {
		gap = t.after(gap)
	}
	// What stands after the gap moves into it, unless it would then stand before its home.
	for i := t.after(gap); t.places[i] != 0; i = t.after(i) {
		p := t.places[i]
		far, step := p.far(), t.distance(gap, i)
		if far == faraway {
			far = t.distance(t.home(hash(p.id())), i)
		}
		if far >= step {
			t.places[gap] = placeOf(p.id(), far-step)
			gap = i
		}
	}
	t.places[gap] = 0
	if t.n--; t.n == 0 {
		t.places = nil
	} else if len(t.places) > fewest && t.n < len(t.places)/4 {
		t.resize(max(len(t.places)/2, fewest), hash)
	}
}

func (t *table) resize(room int, hash func(ID) uint64) {
	old := t.places
	t.places = make([]place, room)
	for _, p := range old {
		if p != 0 {
			t.put(hash(p.id()), p.id())
		}
	}
}
