package index

import (
	"hash/maphash"
	"slices"
	"unsafe"
)

// texts is a column of texts of one block. It holds each value once, and for each row the number
// of its value. Number 0 is the empty text, which rows have that have no value.
//
// A value that no row has any more stays until there are many, see tidy. The bytes of a value never
// change: what reads them may go on when the column has changed.
type texts struct {
	rows  []uint16 // the number of each row's value; the rows after the last one have 0
	ends  []uint32 // value n is bytes[ends[n-1]:ends[n]]; empty, or ends[0] is 0
	bytes []byte
	// table finds the number of a value by its hash. It is nil until a value is sought.
	table []uint16
}

// maxValues is how many values a column may hold before it is tidied: each row's and as many that
// are no longer used.
const maxValues = 2 * blockRows

// seed is that of all hashes. No hash is ever stored.
var seed = maphash.MakeSeed()

// values is how many values there are. They have the numbers from 1.
func (t *texts) values() int { return max(len(t.ends), 1) - 1 }

// value is the value with a number. It is a view: whoever keeps it keeps the column.
func (t *texts) value(n uint16) string {
	if n == 0 {
		return ""
	}
	b := t.bytes[t.ends[n-1]:t.ends[n]]
	return unsafe.String(unsafe.SliceData(b), len(b)) // bytes never change
}

// number is that of the row's value.
func (t *texts) number(row int) uint16 {
	if row < len(t.rows) {
		return t.rows[row]
	}
	return 0
}

// of is the row's value, a view.
func (t *texts) of(row int) string { return t.value(t.number(row)) }

// set gives the row a value.
func (t *texts) set(row int, v string) {
	if t.of(row) == v {
		return
	}
	if t.values() >= maxValues {
		t.tidy()
	}
	for len(t.rows) <= row {
		t.rows = append(t.rows, 0)
	}
	t.rows[row] = t.enter(v)
}

// enter returns the number of a value, which it adds if it is not there.
func (t *texts) enter(v string) uint16 {
	if v == "" {
		return 0
	}
	if len(t.ends) == 0 {
		t.ends = append(t.ends, 0)
	}
	if 4*(t.values()+1) > 3*len(t.table) {
		t.index()
	}
	mask := uint64(len(t.table) - 1)
	at := maphash.String(seed, v) & mask
	for ; t.table[at] != 0; at = (at + 1) & mask {
		if n := t.table[at]; t.value(n) == v {
			return n
		}
	}
	t.bytes = append(t.bytes, v...)
	t.ends = append(t.ends, uint32(len(t.bytes)))
	t.table[at] = uint16(t.values())
	return t.table[at]
}

// index makes the table anew, with room for some values more.
func (t *texts) index() {
	size := 8
	for 4*(t.values()+1) > 2*size {
		size *= 2
	}
	t.table = make([]uint16, size)
	mask := uint64(size - 1)
	for n := 1; n <= t.values(); n++ {
		at := maphash.String(seed, t.value(uint16(n))) & mask
		for t.table[at] != 0 {
			at = (at + 1) & mask
		}
		t.table[at] = uint16(n)
	}
}

// tidy drops the values that no row has.
func (t *texts) tidy() {
	was := *t
	*t = texts{rows: was.rows}
	for row, n := range was.rows {
		t.rows[row] = t.enter(was.value(n))
	}
}

// shrink gives back the room of a column that gets few new values from now on.
func (t *texts) shrink() {
	t.table = nil
	t.rows, t.ends, t.bytes = slices.Clone(t.rows), slices.Clone(t.ends), slices.Clone(t.bytes)
}

// size is about how many bytes of memory the column takes.
func (t *texts) size() int64 {
	return int64(2*cap(t.rows) + 4*cap(t.ends) + cap(t.bytes) + 2*cap(t.table))
}
