package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
)

// encoder appends the msgpack of values that have a plan.
type encoder struct {
	c       *Codec
	b       []byte
	compact bool // names and event types by their numbers, and nothing that is zero
	// In a compact record: the id that the next event has if there is no gap, and the time of the
	// one before it.
	id int64
	at int64
}

// value encodes the struct at v.
func (e *encoder) value(p *plan, v unsafe.Pointer) error {
	n, left := 0, uint64(0) // a bit for each field that is written
	for i := range p.fields {
		if f := &p.fields[i]; !e.leaves(f, f.at(v)) {
			n++
			left |= 1 << i
		}
	}
	e.b = appendMapLen(e.b, n)
	for i := range p.fields {
		if left&(1<<i) == 0 {
			continue
		}
		f := &p.fields[i]
		if e.compact {
			e.b = append(e.b, f.short...)
		} else {
			e.b = append(e.b, f.key...)
		}
		if err := e.field(f, f.at(v)); err != nil {
			return err
		}
	}
	return nil
}

// leaves tells whether a field is left out.
func (e *encoder) leaves(f *field, v unsafe.Pointer) bool {
	switch {
	case f.omit:
		return f.empty(v)
	case e.compact:
		return f.zero(v)
	}
	return false
}

func (e *encoder) field(f *field, v unsafe.Pointer) error {
	switch f.kind {
	case kindText:
		e.b = appendText(e.b, *(*string)(v))
	case kindBool:
		e.b = append(e.b, 0xc2)
		if *(*bool)(v) {
			e.b[len(e.b)-1] = 0xc3
		}
	case kindInt:
		e.b = appendInt(e.b, *(*int64)(v))
	case kindPlainInt:
		e.b = appendInt(e.b, int64(*(*int)(v)))
	case kindUint:
		e.b = appendUint(e.b, *(*uint64)(v))
	case kindUint32:
		e.b = appendUint(e.b, uint64(*(*uint32)(v)))
	case kindFloat:
		e.b = binary.BigEndian.AppendUint64(append(e.b, 0xcb), math.Float64bits(*(*float64)(v)))
	case kindBytes:
		b := *(*[]byte)(v)
		if b == nil {
			e.b = append(e.b, 0xc0)
			return nil
		}
		e.b = appendBytes(e.b, b)
	case kindStruct:
		return e.value(f.elem, v)
	case kindPointer:
		to := *(*unsafe.Pointer)(v)
		if to == nil {
			e.b = append(e.b, 0xc0)
			return nil
		}
		return e.value(f.elem, to)
	default:
		return e.list(f, v)
	}
	return nil
}

func (e *encoder) list(f *field, at unsafe.Pointer) error {
	if *(*unsafe.Pointer)(at) == nil { // a nil slice or map begins with it, and no other
		e.b = append(e.b, 0xc0)
		return nil
	}
	switch f.kind {
	case kindTextMap:
		m := *(*map[string]string)(at)
		e.b = appendMapLen(e.b, len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) { // equal values have equal bytes
			e.b = appendText(appendText(e.b, k), m[k])
		}
		return nil
	case kindTexts:
		texts := *(*[]string)(at)
		e.b = appendArrayLen(e.b, len(texts))
		for _, s := range texts {
			e.b = appendText(e.b, s)
		}
		return nil
	case kindEvents:
		return e.events(at)
	case kindDecisions:
		return e.decisions(at)
	}
	v := f.reflected(at)
	e.b = appendArrayLen(e.b, v.Len())
	for i := range v.Len() {
		if err := e.value(f.elem, v.Index(i).Addr().UnsafePointer()); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) events(at unsafe.Pointer) error {
	n := length(at)
	e.b = appendArrayLen(e.b, n)
	for i := range n {
		v := e.c.events.get(at, i)
		if err := e.event(&v); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) decisions(at unsafe.Pointer) error {
	n := length(at)
	e.b = appendArrayLen(e.b, n)
	for i := range n {
		if err := e.decision(e.c.decisions.get(at, i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) event(v *Event) error {
	if e.compact {
		return e.compactEvent(v)
	}
	e.b = appendInt(append(e.b, 0x94), v.ID)
	e.b = appendText(e.b, v.Type)
	e.b = appendInt(e.b, v.Time)
	return e.eventAttributes(v)
}

func (e *encoder) decision(d Decision) error {
	e.b = appendText(append(e.b, 0x82), "type")
	e.b = appendText(e.b, d.Type)
	e.b = appendText(e.b, "attributes")
	return e.attributes(d.Attributes)
}

// attributes of a type of the author's own go by the library.
func (e *encoder) attributes(a any) error {
	if p, v := e.c.planned(a); p != nil {
		return e.value(p, v)
	}
	return e.other(a)
}

// eventAttributes appends those of an event. Those of an unknown type stand as they came.
func (e *encoder) eventAttributes(v *Event) error {
	switch {
	case !v.Unknown:
		return e.attributes(v.Attributes)
	case len(v.Raw) == 0:
		e.b = append(e.b, 0xc0)
		return nil
	}
	if err := CheckRaw(v.Type, v.Raw); err != nil {
		return err
	}
	e.b = append(e.b, v.Raw...)
	return nil
}

// CheckRaw tells what is wrong with the attributes of an event of an unknown type: what is no
// single value would shift all that follows it in the body.
func CheckRaw(typ string, raw []byte) error {
	if err := Scan(raw); err != nil {
		return fmt.Errorf("event %s: Raw must be one msgpack value: %w", typ, err)
	}
	return nil
}

// other encodes by the library.
func (e *encoder) other(v any) error {
	b, err := AppendByLibrary(e.b, v)
	if err == nil {
		e.b = b
	}
	return err
}

// AppendByLibrary appends the msgpack of v without a plan, in the form in which plans write it.
func AppendByLibrary(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(buf)
	enc.SetCustomStructTag("json")
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func appendUint(b []byte, n uint64) []byte {
	switch {
	case n <= math.MaxInt8:
		return append(b, byte(n))
	case n <= math.MaxUint8:
		return append(b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), n)
}

func appendInt(b []byte, n int64) []byte {
	switch {
	case n >= 0:
		return appendUint(b, uint64(n))
	case n >= -32:
		return append(b, byte(n))
	case n >= math.MinInt8:
		return append(b, 0xd0, byte(n))
	case n >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(n))
}

func appendText(b []byte, s string) []byte {
	if len(s) < 32 {
		return append(append(b, 0xa0|byte(len(s))), s...)
	}
	return append(appendLen(b, 0xd9, len(s)), s...)
}

func appendBytes(b, v []byte) []byte { return append(appendLen(b, 0xc4, len(v)), v...) }

// appendLen writes a length of one, two or four bytes; code is that of the first.
func appendLen(b []byte, code byte, n int) []byte {
	switch {
	case n <= math.MaxUint8:
		return append(b, code, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code+1), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code+2), uint32(n))
}

func appendArrayLen(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendMapLen(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x80|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xde), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdf), uint32(n))
}
