package index

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/droverhq/drover/ops/query"
	"github.com/droverhq/drover/schemas"
)

// Mark says what a snapshot is of.
type Mark struct {
	// Position is the stream's sequence up to which the rows are whole. Some may be newer.
	Position uint64
	// Incarnation tells the stream from another of the same name, at most 1,024 bytes.
	Incarnation string
}

// A snapshot is the magic text, then sections: what is in it (a byte), how long the content is (4
// bytes), the content, and the CRC of all three. The first is the head; then come the blocks; the
// last has the number of rows and the CRC of all before it. Numbers are little-endian, or varints.
const (
	magic = "drover index 1\n"

	headSection  = 1
	blockSection = 2
	endSection   = 3

	maxSection     = 1 << 30
	maxIncarnation = 1 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write writes a snapshot. It holds no lock while w writes: rows that are put meanwhile may be in
// it or not. The mark is that of what was put before.
func (s *Store) Write(w io.Writer, m Mark) error {
	if len(m.Incarnation) > maxIncarnation {
		return fmt.Errorf(
			"the incarnation has %d bytes, more than %d",
			len(m.Incarnation),
			maxIncarnation,
		)
	}
	out := &sections{w: w}
	out.write([]byte(magic))
	s.reading.RLock()
	names := slices.Clone(s.names)
	head := s.appendHead(nil, m)
	blocks := slices.Clone(s.blocks)
	if s.filling >= 0 { // it comes last, so that it is filled on
		blocks = append(blocks, blocks[s.filling])
		blocks[s.filling] = nil
	}
	s.reading.RUnlock()
	out.section(headSection, head)
	var rows uint64
	var room []byte
	for _, b := range blocks {
		if b == nil {
			continue
		}
		s.reading.RLock()
		room = b.append(room[:0], len(names))
		rows += uint64(b.rows)
		s.reading.RUnlock()
		out.section(blockSection, room)
	}
	end := binary.LittleEndian.AppendUint64(nil, rows)
	out.section(endSection, binary.LittleEndian.AppendUint32(end, out.sum))
	return out.err
}

func (s *Store) appendHead(to []byte, m Mark) []byte {
	to = binary.AppendVarint(to, int64(s.partition))
	to = binary.AppendUvarint(to, m.Position)
	to = appendText(to, m.Incarnation)
	to = binary.AppendVarint(to, s.stats.Dropped)
	to = binary.AppendVarint(to, int64(s.stats.DroppedUntil))
	for _, all := range [][]string{s.names, s.stats.Refused} {
		to = binary.AppendUvarint(to, uint64(len(all)))
		for _, name := range all {
			to = appendText(to, name)
		}
	}
	return to
}

// sections writes sections until something fails.
type sections struct {
	w   io.Writer
	sum uint32 // of all that was written
	err error
}

func (o *sections) write(b []byte) {
	if o.err == nil {
		o.sum = crc32.Update(o.sum, castagnoli, b)
		_, o.err = o.w.Write(b)
	}
}

func (o *sections) section(kind byte, content []byte) {
	if len(content) > maxSection && o.err == nil {
		o.err = errors.New("a block is too large for a snapshot")
	}
	head := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	sum := crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, content)
	o.write(head)
	o.write(content)
	o.write(binary.LittleEndian.AppendUint32(nil, sum))
}

// Read reads a snapshot to its end. The error says what is odd about it: then it is of no use.
func Read(r io.Reader) (*Store, Mark, error) {
	s, m, err := read(&reader{r: bufio.NewReaderSize(r, 1<<16)})
	if err != nil {
		return nil, Mark{}, fmt.Errorf("index snapshot: %w", err)
	}
	return s, m, nil
}

func read(in *reader) (s *Store, m Mark, err error) {
	start := make([]byte, len(magic))
	if err = in.full(start); err != nil || string(start) != magic {
		return nil, m, errors.Join(errors.New("it does not begin as one of this version"), err)
	}
	kind, content, err := in.section()
	if err != nil || kind != headSection {
		return nil, m, errors.Join(errors.New("no head"), err)
	}
	if s, m, err = readHead(content); err != nil {
		return nil, m, fmt.Errorf("head: %w", err)
	}
	var rows uint64
	for n := 1; ; n++ {
		sum := in.sum
		kind, content, err := in.section()
		switch {
		case err != nil:
			return nil, m, fmt.Errorf("section %d: %w", n, err)
		case kind == endSection:
			return s, m, in.readEnd(content, rows, sum)
		case kind != blockSection:
			return nil, m, fmt.Errorf("section %d: it is of kind %d", n, kind)
		}
		more, err := s.readBlock(content)
		if err != nil {
			return nil, m, fmt.Errorf("section %d: %w", n, err)
		}
		rows += uint64(more)
	}
}

// readHead makes a store without rows.
func readHead(content []byte) (s *Store, m Mark, err error) {
	d := decoder{rest: content}
	s = New(int(d.varint()))
	m.Position = d.uvarint()
	m.Incarnation = d.text(maxIncarnation)
	s.stats.Dropped = d.varint()
	s.stats.DroppedUntil = schemas.Timestamp(d.varint())
	for _, all := range []*[]string{&s.names, &s.stats.Refused} {
		for range d.count(MaxNames) {
			name := d.text(len(content))
			if slices.Contains(*all, name) {
				d.fail("a name is there twice")
			}
			*all = append(*all, name)
		}
	}
	return s, m, d.end()
}

// readBlock adds a block, and returns how many rows it has. The last one is filled on if it has
// room. Of a run that is there twice, as it came back while the snapshot was written, the later row
// counts.
func (s *Store) readBlock(content []byte) (rows int, err error) {
	b, err := decodeBlock(content, len(s.names))
	if err != nil {
		return 0, err
	}
	rows = b.rows
	s.stats.Rows += rows
	number := len(s.blocks)
	s.place(number, b)
	for row := range b.n {
		if !b.live.has(row) {
			continue
		}
		hash, slot := s.seekPacked(b.id(row), b.text[query.ColumnRun].of(row), b.runs[row])
		if slot != nil {
			p := slot.place()
			if s.blocks[p.block()].sequence[p.row()] > b.sequence[row] {
				b.remove(row)
				s.stats.Rows--
				continue
			}
			s.take(p, hash, slot)
		}
		s.find.add(hash, at(number, row))
	}
	s.filling = -1
	if b.n < blockRows {
		s.filling = number
	}
	return rows, nil
}

// readEnd checks that the last section is of so many rows and of what has this sum, and the last.
func (r *reader) readEnd(content []byte, rows uint64, sum uint32) error {
	d := decoder{rest: content}
	wantRows, wantSum := d.uint64(), d.uint32()
	if err := d.end(); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	if rows != wantRows {
		return fmt.Errorf("it has %d rows instead of %d", rows, wantRows)
	}
	if sum != wantSum {
		return errors.New("the checksum of the whole is another one")
	}
	if r.full(make([]byte, 1)) != io.EOF {
		return errors.New("something comes after the end")
	}
	return nil
}

// reader reads sections.
type reader struct {
	r    io.Reader
	sum  uint32 // of all that was read
	room bytes.Buffer
}

// full fills b.
func (r *reader) full(b []byte) error {
	_, err := io.ReadFull(r.r, b)
	r.sum = crc32.Update(r.sum, castagnoli, b)
	return err
}

// section reads a section, whose content holds until the next one is read. It takes no more memory
// than there is content.
func (r *reader) section() (kind byte, content []byte, err error) {
	var head [5]byte
	if err := r.full(head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.LittleEndian.Uint32(head[1:])
	if length > maxSection {
		return 0, nil, fmt.Errorf("it is said to have %d bytes", length)
	}
	r.room.Reset()
	if _, err := io.CopyN(&r.room, r.r, int64(length)); err != nil {
		return 0, nil, err
	}
	content = r.room.Bytes()
	want := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, content)
	r.sum = crc32.Update(r.sum, castagnoli, content)
	var sum [4]byte
	if err := r.full(sum[:]); err != nil {
		return 0, nil, err
	}
	if binary.LittleEndian.Uint32(sum[:]) != want {
		return 0, nil, errors.New("the checksum is another one")
	}
	return head[0], content, nil
}
