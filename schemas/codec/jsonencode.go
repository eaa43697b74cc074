package codec

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unsafe"
)

// jsonEncoder appends the JSON of values that have a plan: byte for byte what encoding/json writes,
// which does whatever is rare: texts to escape, floats, attributes that have no plan.
type jsonEncoder struct {
	c   *Codec
	b   []byte
	err error
}

func (e *jsonEncoder) value(p *plan, v unsafe.Pointer) {
	e.b = append(e.b, '{')
	first := true
	for i := range p.fields {
		f := &p.fields[i]
		field := f.at(v)
		if f.omit && f.empty(field) {
			continue
		}
		if !first {
			e.b = append(e.b, ',')
		}
		first = false
		e.b = append(e.b, f.quoted...)
		e.field(f, field)
	}
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) field(f *field, v unsafe.Pointer) {
	if f.unit != nil {
		e.unit(f.unit, v)
		return
	}
	switch f.kind {
	case kindText:
		e.text(*(*string)(v))
	case kindBool:
		e.b = strconv.AppendBool(e.b, *(*bool)(v))
	case kindInt:
		e.b = strconv.AppendInt(e.b, *(*int64)(v), 10)
	case kindPlainInt:
		e.b = strconv.AppendInt(e.b, int64(*(*int)(v)), 10)
	case kindUint:
		e.b = strconv.AppendUint(e.b, *(*uint64)(v), 10)
	case kindUint32:
		e.b = strconv.AppendUint(e.b, uint64(*(*uint32)(v)), 10)
	case kindFloat:
		e.other(*(*float64)(v))
	case kindStruct:
		e.value(f.elem, v)
	default:
		if list := f.reflected(v); !list.IsNil() {
			e.list(f, v, list)
			return
		}
		e.b = append(e.b, "null"...)
	}
}

// list writes what may be nil, and is not.
func (e *jsonEncoder) list(f *field, at unsafe.Pointer, v reflect.Value) {
	switch f.kind {
	case kindPointer:
		e.value(f.elem, v.UnsafePointer())
		return
	case kindBytes:
		e.b = append(base64.StdEncoding.AppendEncode(append(e.b, '"'), v.Bytes()), '"')
		return
	case kindTextMap:
		m := v.Interface().(map[string]string)
		e.b = append(e.b, '{')
		for i, k := range slices.Sorted(maps.Keys(m)) {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.text(k)
			e.b = append(e.b, ':')
			e.text(m[k])
		}
		e.b = append(e.b, '}')
		return
	}
	e.b = append(e.b, '[')
	for i := range v.Len() {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		switch f.kind {
		case kindTexts:
			e.text(v.Index(i).String())
		case kindEvents:
			e.event(e.c.events.get(at, i))
		case kindDecisions:
			e.decision(e.c.decisions.get(at, i))
		default:
			e.value(f.elem, v.Index(i).Addr().UnsafePointer())
		}
	}
	e.b = append(e.b, ']')
}

func (e *jsonEncoder) event(v Event) {
	e.b = strconv.AppendInt(append(e.b, `{"id":`...), v.ID, 10)
	e.b = append(e.b, `,"type":`...)
	e.text(v.Type)
	e.b = append(e.b, `,"time":`...)
	e.b = e.c.events.time.Append(e.b, v.Time)
	e.b = append(e.b, `,"attributes":`...)
	e.attributes(v.Attributes)
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) decision(d Decision) {
	e.b = append(e.b, `{"type":`...)
	e.text(d.Type)
	e.b = append(e.b, `,"attributes":`...)
	e.attributes(d.Attributes)
	e.b = append(e.b, '}')
}

func (e *jsonEncoder) attributes(a any) {
	if p, v := e.c.planned(a); p != nil {
		e.value(p, v)
		return
	}
	e.other(a)
}

func (e *jsonEncoder) other(v any) {
	b, err := json.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	e.b = append(e.b, b...)
}

// plainJSON are the bytes that stand in a JSON text as they are, as encoding/json sees it.
var plainJSON = func() (plain [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		plain[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return plain
}()

// Plain tells whether a text stands in JSON as it is.
func Plain[T ~string | ~[]byte](s T) bool {
	for i := range len(s) {
		if !plainJSON[s[i]] {
			return false
		}
	}
	return true
}

func (e *jsonEncoder) text(s string) {
	if !Plain(s) {
		e.other(s)
		return
	}
	e.b = append(append(append(e.b, '"'), s...), '"')
}

func (e *jsonEncoder) unit(u *Unit, v unsafe.Pointer) {
	b, err := u.appendJSON(e.b, v)
	if err != nil {
		if e.err == nil {
			e.err = err
		}
		return
	}
	e.b = b
}
