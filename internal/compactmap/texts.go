package compactmap

import "encoding/binary"

const (
	// chunkLen is the size of a chunk of texts, in bytes. The first ones are smaller; a text that
	// is longer has a chunk of its own.
	chunkLen   = 64 << 10
	firstChunk = 1 << 10
	// grain is what records begin at multiples of, in bytes.
	grain = 4
	// places is how many records may begin in a chunk.
	places    = chunkLen / grain
	maxChunks = 1 << 32 / places
	// gone is set in the first byte of a record that was removed. The length of its text stands
	// above it.
	gone = 1
)

// ref is where a record is: its chunk and its place there.
type ref uint32

// texts is a log of records, each with its text and more bytes. Which entry it belongs to is not in
// it: the index finds that by the text, for the few that are moved.
type texts struct {
	chunks []chunk
	tail   int   // the chunk that is written to, if it has memory
	pool   []int // chunks without memory
	room   int   // bytes of all chunks
	dead   int   // of them, those that are of no use until their chunk is moved
}

type chunk struct {
	b    []byte // what is written; nil if the chunk is free
	dead int
}

// record is one that was read.
type record struct {
	gone       bool
	text, more []byte
	size       int // of all
}

func read(b []byte) record {
	first, at := binary.Uvarint(b)
	more, n := binary.Uvarint(b[at:])
	at += n
	text := at + int(first>>1)
	end := text + int(more)
	return record{gone: first&gone != 0, text: b[at:text], more: b[text:end], size: whole(end)}
}

// whole is a size in whole grains.
func whole(n int) int { return (n + grain - 1) / grain * grain }

func (t *texts) at(r ref) []byte { return t.chunks[r/places].b[r%places*grain:] }

func (t *texts) text(r ref) []byte { return read(t.at(r)).text }
func (t *texts) more(r ref) []byte { return read(t.at(r)).more }

// add writes a record. It is false when there are too many chunks.
func (t *texts) add(text string, more []byte) (ref, bool) {
	var lengths [2 * binary.MaxVarintLen64]byte
	n := binary.PutUvarint(lengths[:], uint64(len(text))<<1)
	n += binary.PutUvarint(lengths[n:], uint64(len(more)))
	r, c, ok := t.reserve(whole(n + len(text) + len(more)))
	if !ok {
		return 0, false
	}
	b := append(append(append(c.b, lengths[:n]...), text...), more...)
	c.b = append(b, make([]byte, whole(len(b))-len(b))...)
	return r, true
}

// reserve gives the chunk that a record of this size is to be appended to.
func (t *texts) reserve(size int) (ref, *chunk, bool) {
	if t.tail < len(t.chunks) {
		if c := &t.chunks[t.tail]; cap(c.b)-len(c.b) >= size {
			return ref(t.tail*places + len(c.b)/grain), c, true
		}
	}
	i := len(t.chunks)
	switch n := len(t.pool); {
	case n > 0:
		i, t.pool = t.pool[n-1], t.pool[:n-1]
	case i == maxChunks:
		return 0, nil, false
	default:
		t.chunks = append(t.chunks, chunk{})
	}
	room := max(size, min(max(t.room, firstChunk), chunkLen))
	t.chunks[i] = chunk{b: make([]byte, 0, room)}
	t.room += room
	if before := t.tail; size <= chunkLen && before != i {
		// nothing more is written after the end of the tail before
		t.tail = i
		c := &t.chunks[before]
		rest := cap(c.b) - len(c.b)
		c.dead += rest
		t.dead += rest
		t.leftover(before)
	}
	return ref(i * places), &t.chunks[i], true
}

// remove marks a record as gone.
func (t *texts) remove(r ref) {
	b := t.at(r)
	size := read(b).size
	b[0] |= gone
	i := int(r / places)
	t.chunks[i].dead += size
	t.dead += size
	t.leftover(i)
}

// leftover gives a chunk's memory back if all of it is dead. The tail is used again, unless it is
// the chunk of one long text: a place after chunkLen would be read as one in another chunk.
func (t *texts) leftover(i int) {
	c := &t.chunks[i]
	switch {
	case i == t.tail && c.dead == len(c.b) && cap(c.b) <= chunkLen:
		t.dead -= c.dead
		c.b, c.dead = c.b[:0], 0
	case c.b != nil && c.dead == cap(c.b):
		t.room -= cap(c.b)
		t.dead -= c.dead
		t.chunks[i] = chunk{}
		t.pool = append(t.pool, i)
	}
}

// tidy moves what is left of the chunk with the most dead bytes to the tail, if too much of all is
// dead. It tells where records have come to.
func (t *texts) tidy(moved func(text []byte, from, to ref)) {
	if t.dead <= t.room/3+chunkLen {
		return
	}
	worst := -1
	for i := range t.chunks { // a thousand of them for a million entries
		if i != t.tail && (worst < 0 || t.chunks[i].dead > t.chunks[worst].dead) {
			worst = i
		}
	}
	if worst < 0 {
		return
	}
	old := t.chunks[worst].b
	for at := 0; at < len(old); {
		k := read(old[at:])
		if !k.gone {
			to, c, ok := t.reserve(k.size)
			if !ok {
				return
			}
			c.b = append(c.b, old[at:at+k.size]...)
			from := ref(worst*places + at/grain)
			moved(k.text, from, to)
			t.remove(from)
		}
		at += k.size
	}
}
