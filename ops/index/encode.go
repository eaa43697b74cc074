package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// append encodes a block, with no attributes but those that have the first numbers. Its spans are
// not in there: they follow from the rows.
func (b *block) append(to []byte, attributes int) []byte {
	to = binary.AppendUvarint(to, uint64(b.n))
	for _, word := range b.live {
		to = binary.LittleEndian.AppendUint64(to, word)
	}
	for _, run := range b.runs {
		to = append(to, run[:]...)
	}
	for row := range b.n {
		to = binary.LittleEndian.AppendUint64(to, uint64(b.started[row]))
		to = binary.LittleEndian.AppendUint64(to, uint64(b.closed[row]))
		to = binary.LittleEndian.AppendUint64(to, uint64(b.events[row]))
		to = binary.LittleEndian.AppendUint64(to, b.sequence[row])
	}
	to = binary.AppendUvarint(to, uint64(len(b.text)))
	for i := range b.text {
		to = b.text[i].append(to)
	}
	attributes = min(attributes, len(b.attributes))
	to = binary.AppendUvarint(to, uint64(attributes))
	for i := range attributes {
		to = b.attributes[i].append(to)
	}
	return to
}

func (t *texts) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(t.rows)))
	for _, n := range t.rows {
		to = binary.LittleEndian.AppendUint16(to, n)
	}
	to = binary.AppendUvarint(to, uint64(t.values()))
	for n := range t.values() {
		to = binary.AppendUvarint(to, uint64(t.ends[n+1]-t.ends[n]))
	}
	return appendText(to, string(t.bytes))
}

func appendText(to []byte, text string) []byte {
	return append(binary.AppendUvarint(to, uint64(len(text))), text...)
}

// decodeBlock reads what append has written, of a store with so many attributes.
func decodeBlock(content []byte, attributes int) (*block, error) {
	d := decoder{rest: content}
	b := &block{n: d.count(blockRows)}
	for i := range b.live {
		b.live[i] = d.uint64()
	}
	b.rows = b.live.len()
	for row := b.n; row < blockRows; row++ {
		if b.live.has(row) {
			d.fail("a row is there that is none")
		}
	}
	b.runs = make([][16]byte, b.n)
	for row := range b.runs {
		copy(b.runs[row][:], d.bytes(16))
	}
	b.started, b.closed = make([]schemas.Timestamp, b.n), make([]schemas.Timestamp, b.n)
	b.events, b.sequence = make([]int64, b.n), make([]uint64, b.n)
	for row := range b.n {
		b.started[row] = schemas.Timestamp(d.uint64())
		b.closed[row] = schemas.Timestamp(d.uint64())
		b.events[row], b.sequence[row] = int64(d.uint64()), d.uint64()
		b.starts.widen(b.started[row])
		b.closes.widen(b.closed[row])
	}
	if n := d.uvarint(); n != uint64(len(b.text)) {
		d.fail(fmt.Sprintf("it has %d columns", n))
	}
	for i := range b.text {
		b.text[i] = d.texts(b.n)
	}
	b.attributes = make([]texts, d.count(attributes))
	for i := range b.attributes {
		b.attributes[i] = d.texts(b.n)
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	return b, b.check()
}

// check finds rows that cannot be.
func (b *block) check() error {
	for row := range b.n {
		run := b.text[query.ColumnRun].of(row)
		if _, ok := packed(run); ok || run != "" && b.runs[row] != [16]byte{} {
			return errors.New("a run id is not packed as it should be")
		}
		if b.live.has(row) && b.id(row) == "" {
			return errors.New("a row has no id")
		}
	}
	tags := &b.text[query.ColumnTag]
	for n := range tags.values() {
		text := tags.value(uint16(n + 1))
		if packTags(unpackTags(text)) != text {
			return errors.New("a value is no list of tags")
		}
	}
	return nil
}

// decoder reads from a section. After the first failure it reads nothing any more.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = errors.New(what)
	}
	d.rest = nil
}

// end returns what has failed, or that there is more.
func (d *decoder) end() error {
	if len(d.rest) > 0 {
		d.fail("it has more than it should have")
	}
	return d.err
}

// bytes reads n bytes, which are nil if there are not so many.
func (d *decoder) bytes(n int) (b []byte) {
	if n < 0 || n > len(d.rest) {
		d.fail("it ends too early")
		return nil
	}
	b, d.rest = d.rest[:n], d.rest[n:]
	return b
}

func (d *decoder) uint64() uint64 {
	if b := d.bytes(8); len(b) == 8 {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) uint32() uint32 {
	if b := d.bytes(4); len(b) == 4 {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("it ends in a number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.fail("it ends in a number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads how many there are of something, which may be so many at most.
func (d *decoder) count(most int) int {
	n := d.uvarint()
	if n > uint64(most) {
		d.fail(fmt.Sprintf("it has %d of something, and may have %d", n, most))
		return 0
	}
	return int(n)
}

func (d *decoder) text(most int) string {
	return string(d.bytes(d.count(most)))
}

// texts reads a column of a block with so many rows.
func (d *decoder) texts(rows int) (t texts) {
	if n := d.count(rows); n > 0 {
		raw := d.bytes(2 * n)
		t.rows = make([]uint16, len(raw)/2)
		for i := range t.rows {
			t.rows[i] = binary.LittleEndian.Uint16(raw[2*i:])
		}
	}
	if n := d.count(maxValues); n > 0 {
		t.ends = make([]uint32, 1, n+1)
		total := uint64(0)
		for range n {
			length := d.uvarint()
			if length == 0 || length > maxSection {
				d.fail("a value has no sensible length")
			}
			if total += length; total > maxSection {
				d.fail("the values are too long")
			}
			t.ends = append(t.ends, uint32(total))
		}
	}
	t.bytes = bytes.Clone(d.bytes(d.count(maxSection)))
	if d.err != nil {
		return texts{}
	}
	if t.values() > 0 && int(t.ends[t.values()]) != len(t.bytes) ||
		t.values() == 0 && len(t.bytes) > 0 {
		d.fail("the values are not as long as they should be")
	}
	for _, n := range t.rows {
		if int(n) > t.values() {
			d.fail("a row has a value that is not there")
			break
		}
	}
	return t
}
