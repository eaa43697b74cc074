package codec

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"unsafe"
)

// reader reads what encoder writes. It bounds every length by what is left of the body. At the
// first thing that it does not expect it gives up: it is bad then, and what it has read means
// nothing. Bodies with names are then read by the library, which takes more shapes and says what is
// wrong; of compact ones there are no others.
type reader struct {
	c       *Codec
	b       []byte
	pos     int
	compact bool
	bad     bool
	owned   bool // what is decoded may point into the body
}

// ByPlan decodes a msgpack value, a body without its version, into v by its plan. It is false if
// there is none, or if the value is not what the plan expects; then v is zero.
func (c *Codec) ByPlan(b []byte, v any, owned bool) bool {
	p, value := c.planned(v)
	if p == nil || len(b) > MaxBody {
		return false
	}
	r := reader{c: c, b: b, owned: owned}
	r.value(p, value)
	if r.bad || r.pos != len(b) {
		p.clear(value)
		return false
	}
	return true
}

func (r *reader) fail() { r.bad = true }

func (r *reader) byte() byte {
	if r.bad || r.pos >= len(r.b) {
		r.fail()
		return 0xc1
	}
	c := r.b[r.pos]
	r.pos++
	return c
}

// take returns the next n bytes of the body.
func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)-r.pos) {
		r.fail()
		return nil
	}
	b := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) number(size uint64) uint64 {
	b := r.take(size)
	switch {
	case r.bad:
	case size == 1:
		return uint64(b[0])
	case size == 2:
		return uint64(binary.BigEndian.Uint16(b))
	case size == 4:
		return uint64(binary.BigEndian.Uint32(b))
	case size == 8:
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// isNil steps over a nil.
func (r *reader) isNil() bool {
	if !r.bad && r.pos < len(r.b) && r.b[r.pos] == 0xc0 {
		r.pos++
		return true
	}
	return false
}

// length reads the head of an array or a map: a short one has the code least to least+15, the
// others code and code+1. Each element has at least each bytes.
func (r *reader) length(least, code byte, each int) int {
	var n uint64
	switch c := r.byte(); {
	case c >= least && c < least+16:
		n = uint64(c - least)
	case c == code:
		n = r.number(2)
	case c == code+1:
		n = r.number(4)
	default:
		r.fail()
	}
	if r.bad || n > uint64((len(r.b)-r.pos)/each) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) arrayLen(each int) int { return r.length(0x90, 0xdc, each) }
func (r *reader) mapLen() int           { return r.length(0x80, 0xde, 2) }

// text returns the bytes of a text; they are those of the body.
func (r *reader) text() []byte {
	switch c := r.byte(); {
	case c >= 0xa0 && c < 0xc0:
		return r.take(uint64(c - 0xa0))
	case c >= 0xd9 && c <= 0xdb:
		return r.take(r.number(1 << (c - 0xd9)))
	}
	r.fail()
	return nil
}

// string is a text as a string.
func (r *reader) string() string { return r.kept(r.text()) }

func (r *reader) kept(b []byte) string {
	if r.owned {
		return unsafe.String(unsafe.SliceData(b), len(b))
	}
	return string(b)
}

// bytes returns a copy if the body is somebody else's: a payload outlives its message.
func (r *reader) bytes() []byte {
	if r.isNil() {
		return nil
	}
	c := r.byte()
	if c < 0xc4 || c > 0xc6 {
		r.fail()
		return nil
	}
	b := r.take(r.number(1 << (c - 0xc4)))
	if r.bad {
		return nil
	}
	if r.owned {
		return slices.Clip(b) // who appends to it must not write into what follows
	}
	return append(make([]byte, 0, len(b)), b...)
}

func (r *reader) uint() uint64 {
	switch c := r.byte(); {
	case c < 0x80:
		return uint64(c)
	case c >= 0xcc && c <= 0xcf:
		return r.number(1 << (c - 0xcc))
	}
	r.fail()
	return 0
}

func (r *reader) int() int64 {
	if r.bad || r.pos >= len(r.b) {
		r.fail()
		return 0
	}
	c := r.b[r.pos]
	switch {
	case c >= 0xe0:
		r.pos++
		return int64(int8(c))
	case c >= 0xd0 && c <= 0xd3:
		r.pos++
		size := uint64(1) << (c - 0xd0)
		shift := 64 - 8*size
		return int64(r.number(size)<<shift) >> shift
	}
	n := r.uint()
	if n > math.MaxInt64 {
		r.fail()
	}
	return int64(n)
}

// skip steps over any value. A body may nest as deep as MaxDepth; how deep r is in it stays below
// the difference.
func (r *reader) skip() []byte {
	if r.bad {
		return nil
	}
	end, err := scan(r.b, r.pos, MaxDepth-8)
	if err != nil {
		r.fail()
		return nil
	}
	return r.take(uint64(end - r.pos))
}

func (r *reader) value(p *plan, v unsafe.Pointer) {
	seen, next := uint64(0), 0
	for n := r.mapLen(); n > 0 && !r.bad; n-- {
		i, known := r.key(p, next)
		next = i + 1
		switch {
		case r.bad:
		case !known:
			r.skip()
		case seen&(1<<i) != 0: // which one counts is not ours to say
			r.fail()
		default:
			seen |= 1 << i
			f := &p.fields[i]
			r.field(f, f.at(v))
		}
	}
}

// key reads a field's name, or in a compact body its number. It is looked for from next on first:
// fields stand in their order, less those left out.
func (r *reader) key(p *plan, next int) (i int, known bool) {
	if r.compact && !r.bad && r.pos < len(r.b) &&
		(r.b[r.pos] < 0x80 || r.b[r.pos] >= 0xcc && r.b[r.pos] <= 0xcf) {
		n := r.uint()
		if n >= uint64(len(p.byWord)) || p.byWord[n] == 0 {
			return 0, false
		}
		return int(p.byWord[n]) - 1, true
	}
	if !r.bad {
		if i, n := expected(p.keys, next, r.b[r.pos:]); n > 0 {
			r.pos += n
			return i, true
		}
	}
	i, known = p.byName[string(r.text())]
	return i, known
}

func (r *reader) field(f *field, v unsafe.Pointer) {
	switch f.kind {
	case kindText:
		if b := r.text(); !r.bad {
			*(*string)(v) = r.kept(b)
		}
	case kindBool:
		c := r.byte()
		if c != 0xc2 && c != 0xc3 {
			r.fail()
		}
		*(*bool)(v) = c == 0xc3
	case kindInt:
		*(*int64)(v) = r.int()
	case kindPlainInt:
		n := r.int()
		if n != int64(int(n)) {
			r.fail()
		}
		*(*int)(v) = int(n)
	case kindUint:
		*(*uint64)(v) = r.uint()
	case kindUint32:
		n := r.uint()
		if n > math.MaxUint32 {
			r.fail()
		}
		*(*uint32)(v) = uint32(n)
	case kindFloat:
		if r.byte() != 0xcb {
			r.fail()
		}
		*(*float64)(v) = math.Float64frombits(r.number(8))
	case kindBytes:
		*(*[]byte)(v) = r.bytes()
	case kindStruct:
		r.value(f.elem, v)
	case kindPointer:
		if r.isNil() {
			*(*unsafe.Pointer)(v) = nil
			return
		}
		r.value(f.elem, f.pointee(v))
	default:
		r.list(f, v)
	}
}

// pointee is what the pointer at p points to, made if there is nothing.
func (f *field) pointee(p unsafe.Pointer) unsafe.Pointer {
	to := (*unsafe.Pointer)(p)
	if *to == nil {
		*to = reflect.New(f.elem.typ).UnsafePointer()
	}
	return *to
}

func (r *reader) list(f *field, v unsafe.Pointer) {
	if r.isNil() {
		f.reflected(v).SetZero()
		return
	}
	switch f.kind {
	case kindTextMap:
		n := r.mapLen()
		m := make(map[string]string, min(n, 16))
		for ; n > 0 && !r.bad; n-- {
			k := r.string()
			m[k] = r.string()
		}
		*(*map[string]string)(v) = m
	case kindTexts:
		n := r.arrayLen(1)
		all := make([]string, 0, n)
		for ; n > 0 && !r.bad; n-- {
			all = append(all, r.string())
		}
		*(*[]string)(v) = all
	case kindEvents:
		r.events(v)
	case kindDecisions:
		r.decisions(v)
	case kindStructs:
		n := r.arrayLen(1)
		all := reflect.MakeSlice(f.typ, n, n)
		for i := 0; i < n && !r.bad; i++ {
			r.value(f.elem, all.Index(i).Addr().UnsafePointer())
		}
		f.reflected(v).Set(all)
	}
}

func (r *reader) events(at unsafe.Pointer) {
	n := r.arrayLen(3)
	r.c.events.make(at, n)
	for ; n > 0 && !r.bad; n-- {
		if r.compact {
			r.c.events.add(at, r.compactEvent())
		} else {
			r.c.events.add(at, r.event())
		}
	}
}

func (r *reader) event() (e Event) {
	n := r.arrayLen(1)
	if n < 4 {
		r.fail()
	}
	e.ID = r.int()
	typ := r.text()
	e.Time = r.int()
	r.eventAttributes(&e, typ)
	for ; n > 4 && !r.bad; n-- {
		r.skip()
	}
	return e
}

// eventAttributes reads those of an event whose type has been read.
func (r *reader) eventAttributes(e *Event, typ []byte) {
	if r.bad {
		return
	}
	create, known := r.c.events.types[string(typ)]
	if !known {
		e.Type, e.Unknown = string(typ), true
		if raw := r.skip(); !r.bad {
			e.Raw = append(e.Raw, raw...)
		}
		return
	}
	e.Attributes = create()
	p, v := r.c.planned(e.Attributes)
	if p == nil {
		r.fail()
		return
	}
	if !r.isNil() {
		r.value(p, v)
	}
}

func (r *reader) decisions(at unsafe.Pointer) {
	n := r.arrayLen(1)
	r.c.decisions.make(at, n)
	for ; n > 0 && !r.bad; n-- {
		r.c.decisions.add(at, r.decision())
	}
}

// decision reads one as this module writes it, the type first.
func (r *reader) decision() (d Decision) {
	if n := r.mapLen(); n != 2 || string(r.text()) != "type" {
		r.fail()
	}
	typ := r.text()
	if string(r.text()) != "attributes" || r.bad {
		r.fail()
		return d
	}
	create, known := r.c.decisions.types[string(typ)]
	if !known {
		d.Type = string(typ)
		r.skip()
		return d
	}
	d.Attributes = create()
	p, v := r.c.planned(d.Attributes)
	if p == nil {
		r.fail()
		return d
	}
	r.value(p, v)
	return d
}
