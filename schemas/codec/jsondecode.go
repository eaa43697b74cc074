package codec

import (
	"encoding/json"
	"math"
	"unicode/utf8"
	"unsafe"
)

// jsonReader reads JSON bodies by a plan. At the first thing that it does not expect, a field that
// it does not know among them, it is bad, and encoding/json reads the body anew: that one matches
// names in any case and says what is wrong.
type jsonReader struct {
	c   *Codec
	b   []byte
	pos int
	bad bool
	// owned: what is decoded may point into the body.
	owned bool
	// strict: objects that the library decodes have no field that is not known, as those of plans.
	strict bool
}

// JSONByPlan is [Codec.ByPlan] for a JSON body. A strict one has no field that is not known.
func (c *Codec) JSONByPlan(b []byte, v any, owned, strict bool) bool {
	p, value := c.planned(v)
	if p == nil || len(b) > MaxBody {
		return false
	}
	r := jsonReader{c: c, b: b, owned: owned, strict: strict}
	r.value(p, value)
	r.peek()
	if r.bad || r.pos != len(b) {
		p.clear(value)
		return false
	}
	return true
}

func (r *jsonReader) fail() { r.bad = true }

// peek steps over white space and returns what comes; 0 at the end and if r is bad.
func (r *jsonReader) peek() byte {
	for ; !r.bad && r.pos < len(r.b); r.pos++ {
		switch c := r.b[r.pos]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (r *jsonReader) is(c byte) bool {
	if r.peek() != c || r.bad || r.pos >= len(r.b) {
		return false
	}
	r.pos++
	return true
}

func (r *jsonReader) want(c byte) {
	if !r.is(c) {
		r.fail()
	}
}

func (r *jsonReader) word(w string) bool {
	r.peek()
	if r.bad || len(r.b)-r.pos < len(w) || string(r.b[r.pos:r.pos+len(w)]) != w {
		return false
	}
	r.pos += len(w)
	return true
}

// each calls f for each element of what open begins; f reads it.
func (r *jsonReader) each(open, end byte, f func()) {
	r.want(open)
	if r.is(end) {
		return
	}
	for !r.bad {
		f()
		if r.is(end) {
			return
		}
		r.want(',')
	}
}

// raw steps over a text and returns it with its quotes, and whether it has escapes.
func (r *jsonReader) raw() (text []byte, escaped bool) {
	if r.want('"'); r.bad {
		return nil, false
	}
	begin := r.pos - 1 // want steps over space first
	for r.pos < len(r.b) {
		c := r.b[r.pos]
		r.pos++
		switch {
		case c == '"':
			return r.b[begin:r.pos], escaped
		case c == '\\':
			escaped = true
			r.pos++
		case c < ' ':
			r.fail()
			return nil, false
		}
	}
	r.fail()
	return nil, false
}

func (r *jsonReader) text() string {
	raw, escaped := r.raw()
	if r.bad {
		return ""
	}
	if inner := raw[1 : len(raw)-1]; !escaped && utf8.Valid(inner) {
		if r.owned {
			return unsafe.String(unsafe.SliceData(inner), len(inner))
		}
		return string(inner)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		r.fail()
	}
	return s
}

// name reads a key, which is one of our own: without escapes.
func (r *jsonReader) name() []byte {
	raw, escaped := r.raw()
	if r.want(':'); r.bad || escaped {
		r.fail()
		return nil
	}
	return raw[1 : len(raw)-1]
}

// int reads a whole number of at most 18 digits, which fits.
func (r *jsonReader) int() int64 {
	negative := r.is('-')
	r.peek()
	begin, n := r.pos, int64(0)
	for ; !r.bad && r.pos < len(r.b) && r.b[r.pos] >= '0' && r.b[r.pos] <= '9' && r.pos-begin < 19; r.pos++ {
		n = 10*n + int64(r.b[r.pos]-'0')
	}
	digits := r.pos - begin
	if digits == 0 || digits > 18 || digits > 1 && r.b[begin] == '0' ||
		negative && (r.b[begin-1] != '-' || n == 0) {
		// the library refuses -0 where no sign may be
		r.fail()
	}
	if r.pos < len(r.b) && (r.b[r.pos] == '.' || r.b[r.pos] == 'e' || r.b[r.pos] == 'E') {
		r.fail()
	}
	if negative {
		return -n
	}
	return n
}

// any steps over a value of any kind and returns it. It is checked that it is JSON.
func (r *jsonReader) any() []byte {
	c := r.peek()
	begin := r.pos
	if c == '"' {
		if text, escaped := r.raw(); !escaped {
			return text
		}
	} else if r.span(); r.bad {
		return nil
	}
	if r.bad || !json.Valid(r.b[begin:r.pos]) {
		r.fail()
		return nil
	}
	return r.b[begin:r.pos]
}

// span steps to where an array, an object, a number or a word ends, if it is one.
func (r *jsonReader) span() {
	for depth := 0; !r.bad && r.pos < len(r.b); {
		switch r.b[r.pos] {
		case '"':
			r.raw()
			continue
		case '{', '[':
			if depth++; depth > MaxPayloadDepth {
				r.fail()
			}
		case '}', ']':
			if depth == 0 {
				return
			}
			if depth--; depth == 0 {
				r.pos++
				return
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return
			}
		}
		r.pos++
	}
}

func (r *jsonReader) value(p *plan, v unsafe.Pointer) {
	seen, next := uint64(0), 0
	r.each('{', '}', func() {
		i, known := r.key(p, next)
		next = i + 1
		if r.bad || !known || seen&(1<<i) != 0 {
			r.fail()
			return
		}
		seen |= 1 << i
		f := &p.fields[i]
		r.field(f, f.at(v))
	})
}

// key is [reader.key] for JSON.
func (r *jsonReader) key(p *plan, next int) (i int, known bool) {
	r.peek()
	if !r.bad {
		if i, n := expected(p.quoted, next, r.b[r.pos:]); n > 0 {
			r.pos += n
			return i, true
		}
	}
	i, known = p.byName[string(r.name())]
	return i, known
}

func (r *jsonReader) field(f *field, v unsafe.Pointer) {
	if r.peek() == 'n' {
		switch {
		case f.unit != nil:
			r.unit(f.unit, v)
		case !r.word("null"):
			r.fail()
		case f.kind >= kindBytes && f.kind != kindStruct: // the others keep what they have
			f.reflected(v).SetZero()
		}
		return
	}
	if f.unit != nil {
		r.unit(f.unit, v)
		return
	}
	switch f.kind {
	case kindText:
		*(*string)(v) = r.text()
	case kindBool:
		t := r.word("true")
		if !t && !r.word("false") {
			r.fail()
		}
		*(*bool)(v) = t
	case kindInt:
		*(*int64)(v) = r.int()
	case kindPlainInt:
		n := r.int()
		if f.name == "v" && n != Version || n != int64(int(n)) {
			r.fail()
		}
		*(*int)(v) = int(n)
	case kindUint:
		n := r.int()
		if n < 0 {
			r.fail()
		}
		*(*uint64)(v) = uint64(n)
	case kindUint32:
		n := r.int()
		if n < 0 || n > math.MaxUint32 {
			r.fail()
		}
		*(*uint32)(v) = uint32(n)
	case kindStruct:
		r.value(f.elem, v)
	case kindPointer:
		r.value(f.elem, f.pointee(v))
	case kindTexts:
		all := []string{}
		r.each('[', ']', func() { all = append(all, r.text()) })
		*(*[]string)(v) = all
	case kindEvents:
		r.c.events.make(v, 0)
		r.each('[', ']', func() { r.c.events.add(v, r.event()) })
	case kindDecisions:
		r.c.decisions.make(v, 0)
		r.each('[', ']', func() { r.c.decisions.add(v, r.decision()) })
	default: // floats, bytes, maps
		raw := r.any()
		if !r.bad && json.Unmarshal(raw, f.reflected(v).Addr().Interface()) != nil {
			r.fail()
		}
		if !r.bad && r.strict {
			if _, err := r.c.unknownField(raw, f.typ); err != nil {
				r.fail()
			}
		}
	}
}

// unit reads what has a JSON form of its own.
func (r *jsonReader) unit(u *Unit, v unsafe.Pointer) {
	if raw := r.any(); !r.bad && u.readJSON(raw, r.owned, v) != nil {
		r.fail()
	}
}

// event reads one as this module writes it: the attributes after their type.
func (r *jsonReader) event() (e Event) {
	typ := ""
	seen := 0
	r.each('{', '}', func() {
		name := r.name()
		switch seen++; {
		case seen == 1 && string(name) == "id":
			e.ID = r.int()
		case seen == 2 && string(name) == "type":
			typ = r.text()
		case seen == 3 && string(name) == "time":
			if raw := r.any(); !r.bad {
				var err error
				if e.Time, err = r.c.events.time.Read(raw); err != nil {
					r.fail()
				}
			}
		case seen == 4 && string(name) == "attributes":
			create, known := r.c.events.types[typ]
			if !known {
				r.fail()
				return
			}
			e.Attributes = create()
			r.attributes(e.Attributes)
		default:
			r.fail()
		}
	})
	if seen != 4 {
		r.fail()
	}
	return e
}

func (r *jsonReader) decision() (d Decision) {
	seen := 0
	r.each('{', '}', func() {
		name := r.name()
		switch seen++; {
		case seen == 1 && string(name) == "type":
			if d.Type = r.text(); r.c.decisions.types[d.Type] != nil {
				d.Attributes = r.c.decisions.types[d.Type]()
			}
		case seen == 2 && string(name) == "attributes":
			r.attributes(d.Attributes)
		default:
			r.fail()
		}
	})
	if seen == 0 {
		r.fail()
	}
	return d
}

func (r *jsonReader) attributes(a any) {
	p, v := r.c.planned(a)
	if p == nil {
		r.fail()
		return
	}
	r.value(p, v)
}
