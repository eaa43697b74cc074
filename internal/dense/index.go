package dense

const (
	// parts is how many tables the index is: each grows by itself, so that growing holds nobody up for long.
	parts = 64
	// fewest is the room of the smallest table.
	fewest = 8
)

// index finds numbers by hashes: open addressing with linear probing. A number stands at or behind the place that its
// hash says, with no empty place between; removing closes the gap, so nothing is marked as gone.
type index [parts]table

// table holds numbers, plus one; 0 is an empty place.
type table struct {
	places []ID
	n      int
}

// home is where a number of this hash belongs. Tables are of any size, so the hash is scaled; its lowest bits say which table.
func (t *table) home(h uint64) int { return int(h >> 32 * uint64(len(t.places)) >> 32) }

func (t *table) after(i int) int {
	if i++; i == len(t.places) {
		return 0
	}
	return i
}

func (x *index) table(h uint64) *table { return &x[h%parts] }

// find gives the number at the hash for which same is true.
func (x *index) find(h uint64, same func(ID) bool) (ID, bool) {
	t := x.table(h)
	if t.n == 0 {
		return 0, false
	}
	for i := t.home(h); t.places[i] != 0; i = t.after(i) {
		if id := t.places[i] - 1; same(id) {
			return id, true
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
	i := t.home(h)
	for t.places[i] != 0 {
		i = t.after(i)
	}
	t.places[i] = id + 1
}

// remove removes a number that is there.
func (x *index) remove(h uint64, id ID, hash func(ID) uint64) {
	t := x.table(h)
	gap := t.home(h)
	for t.places[gap] != id+1 {
		gap = t.after(gap)
	}
	// What stands behind the gap moves into it, unless it would then stand before its home.
	for i := t.after(gap); t.places[i] != 0; i = t.after(i) {
		home := t.home(hash(t.places[i] - 1))
		if stays := gap < i && gap < home && home <= i || gap > i && (gap < home || home <= i); !stays {
			t.places[gap] = t.places[i]
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
	t.places = make([]ID, room)
	for _, id := range old {
		if id != 0 {
			t.put(hash(id-1), id-1)
		}
	}
}
