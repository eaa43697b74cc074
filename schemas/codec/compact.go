package codec

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/droverhq/drover/internal/bufpool"
)

// versionCompact is the first byte of a compact record: msgpack as in any other body, but names of
// fields and types of events are numbers (see words), what is zero is left out, and of an event is
// written only what the record does not tell:
//
//	[type, time, attributes]      its id is first + its place
//	[type, time, attributes, id]  its id is first + its place + id
//
// The time is the difference to the event before it, that of the first to the inbox position. No
// other message is written so: a record is kept for ever, and read by brokers alone.
const versionCompact = 2

// versionPacked is the first byte of a compact record after which the msgpack is one block of S2.
// Where a namespace has its histories compressed by the server, whole blocks once they are full, it
// makes no difference to those; it makes one to all others, to what lies in the last block, and to
// what is sent and synced.
const versionPacked = 3

const (
	// packFrom is the size from which on a record is packed: identifiers and hashes alone do not
	// become smaller.
	packFrom = 256
	// maxPacked is how much larger than its packed form a record may be, so that a reader can bound
	// what it allocates.
	maxPacked = 64
)

// marshalRecord encodes a record as it is stored.
func (c *Codec) marshalRecord(v any) (body []byte, err error) {
	err = c.recordTo(v, func(in *bufpool.Buffer, b []byte) error {
		body = in.Keep(b)
		return nil
	})
	return body, err
}

// recordTo encodes a record as it is stored, and calls use with it and the room in which it stands.
func (c *Codec) recordTo(v any, use func(*bufpool.Buffer, []byte) error) error {
	plain, pack := bufpool.Get(), bufpool.Get()
	defer plain.Put()
	defer pack.Put()
	b, err := c.AppendRecord(plain.Bytes(), v)
	if err != nil {
		return err
	}
	if len(b) < packFrom {
		return use(plain, b)
	}
	packed := slices.Grow(pack.Bytes(), 1+s2.MaxEncodedLen(len(b)-1))
	packed = append(packed, versionPacked)
	packed = packed[:1+len(s2.Encode(packed[1:cap(packed)], b[1:]))]
	if len(packed) > len(b)-len(b)/8 || len(b) > maxPacked*len(packed) {
		return use(plain, b)
	}
	plain.Use(b) // it has grown, perhaps
	return use(pack, packed)
}

// unpack returns what follows the version of a compact record, in the memory of b if that is
// enough.
func unpack(b, packed []byte) ([]byte, error) {
	n, err := s2.DecodedLen(packed)
	if err == nil && (n > MaxBody || n > maxPacked*(1+len(packed))) {
		err = fmt.Errorf("%d bytes unpack to %d", len(packed), n)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	b, err = s2.Decode(b, packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return b, nil
}

// Unpacked returns the body of a message with its payloads in plain sight, byte for byte, for
// whoever searches bodies without decoding them. Only records of histories are ever packed. An
// error wraps [ErrMalformed].
func Unpacked(body []byte) ([]byte, error) {
	if len(body) == 0 || body[0] != versionPacked {
		return body, nil
	}
	return unpack(nil, body[1:])
}

// AppendRecord appends the compact body of a record, not packed.
func (c *Codec) AppendRecord(b []byte, v any) ([]byte, error) {
	id, at := c.record.origin(v)
	e := encoder{c: c, b: append(b, versionCompact), compact: true, id: id, at: at}
	p, value := c.planned(v)
	if err := e.value(p, value); err != nil {
		return nil, fmt.Errorf("schemas: encode %T: %w", v, err)
	}
	return e.b, nil
}

func (e *encoder) compactEvent(v *Event) error {
	id := v.ID - e.id
	n := byte(0x93)
	if id != 0 {
		n++
	}
	e.b = append(e.b, n)
	number := e.c.eventNumbers[v.Type]
	if number > 0 {
		e.b = appendUint(e.b, uint64(number))
	} else {
		e.b = appendText(e.b, v.Type)
	}
	e.b = appendInt(e.b, v.Time-e.at)
	e.id++
	e.at = v.Time
	e.compact = number > 0
	err := e.eventAttributes(v)
	e.compact = true
	if id != 0 {
		e.b = appendInt(e.b, id)
	}
	return err
}

// compactEvent reads an event as it stands. Its id and time are differences until the whole record
// is read.
func (r *reader) compactEvent() (e Event) {
	n := r.arrayLen(1)
	if n < 3 {
		r.fail()
	}
	if r.bad || r.pos >= len(r.b) {
		r.fail()
		return e
	}
	typ := []byte(nil)
	if c := r.b[r.pos]; c < 0x80 {
		if n := int(r.uint()); n > 0 && n <= len(r.c.eventWords) {
			typ = []byte(r.c.eventWords[n-1])
		} else {
			r.fail() // the list is closed
		}
	} else {
		typ = r.text()
	}
	e.Time = r.int()
	r.eventAttributes(&e, typ)
	if n > 3 {
		e.ID = r.int()
	}
	for ; n > 4 && !r.bad; n-- {
		r.skip()
	}
	return e
}

// decodeRecord reads what follows the version of a compact record.
func (c *Codec) decodeRecord(version byte, b []byte, record any, owned bool) error {
	if version != versionPacked {
		return c.decodeCompact(b, record, owned)
	}
	if owned { // then it is the unpacked body that the record has
		b, err := unpack(nil, b)
		if err != nil {
			return err
		}
		return c.decodeCompact(b, record, true)
	}
	plain := bufpool.Get() // nothing that is decoded points into it
	defer plain.Put()
	b, err := unpack(plain.Bytes(), b)
	if err != nil {
		return err
	}
	return c.decodeCompact(plain.Use(b), record, false)
}

// decodeCompact reads a compact record that is not packed.
func (c *Codec) decodeCompact(b []byte, record any, owned bool) error {
	if len(b) > MaxBody {
		return fmt.Errorf("%w: %d bytes exceed the limit of %d", ErrMalformed, len(b), MaxBody)
	}
	p, v := c.planned(record)
	r := reader{c: c, b: b, compact: true, owned: owned}
	r.value(p, v)
	switch {
	case r.bad:
		return fmt.Errorf("%w: no compact record, at byte %d", ErrMalformed, r.pos)
	case r.pos != len(b):
		return fmt.Errorf("%w: %d bytes follow the record", ErrMalformed, len(b)-r.pos)
	}
	c.record.settle(record)
	return nil
}
