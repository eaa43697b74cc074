package codec

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
)

// plan says how a struct is encoded and decoded: what reflection tells of it, asked once. The codec
// of the plans and the one of the msgpack library write the same bytes; where a value or a body is
// not what a plan expects, the library does it.
//
// Fields are reached by their place in memory: what reflection checks at each of them has been
// checked when the plan was made. That spares a twelfth to a sixth of the time. Generated code
// would save some hundred nanoseconds a message more, for thousands of lines that nobody reads.
type plan struct {
	typ    reflect.Type
	fields []field
	byName map[string]int
	keys   []string // of the fields, as msgpack texts
	quoted []string // of the fields, in JSON, with their colons
	byWord []int8   // by the number of a name the place in fields and 1; 0 if there is none
}

// keysAhead is how many names a reader compares before it asks a plan's map, which takes as long as
// some of them.
const keysAhead = 6

// expected returns which of the names, in the order in which they stand in a body, it goes on with,
// looked for from next on, and how long that is: 0 if it is none of the next few.
func expected(names []string, next int, left []byte) (i, n int) {
	if len(left) < 2 {
		return 0, 0
	}
	for i := next; i < min(len(names), next+keysAhead); i++ {
		if name := names[i]; name[1] == left[1] && len(left) >= len(name) &&
			string(left[:len(name)]) == name {
			return i, len(name)
		}
	}
	return 0, 0
}

// clear takes back what a decoder has read that gave up: the library would add to it, and write
// over what it points to, which may be the body.
func (p *plan) clear(at unsafe.Pointer) { reflect.NewAt(p.typ, at).Elem().SetZero() }

type field struct {
	name   string
	key    string // the name as a msgpack text
	short  string // the name as a number of words, or as a text if it has none
	quoted string // the name in JSON, with its colon
	offset uintptr
	typ    reflect.Type
	kind   kind
	unit   *Unit // nil if the type has no JSON form of its own
	omit   bool  // left out if empty
	elem   *plan
}

// at is where a field is in the struct at base.
func (f *field) at(base unsafe.Pointer) unsafe.Pointer { return unsafe.Add(base, f.offset) }

// reflected is the field at p, for what is rare.
func (f *field) reflected(p unsafe.Pointer) reflect.Value { return reflect.NewAt(f.typ, p).Elem() }

// empty tells whether a field that may be left out is.
func (f *field) empty(p unsafe.Pointer) bool {
	switch f.kind {
	case kindBytes:
		return len(*(*[]byte)(p)) == 0
	case kindEvents, kindDecisions:
		return length(p) == 0
	case kindTexts:
		return len(*(*[]string)(p)) == 0
	case kindTextMap:
		return len(*(*map[string]string)(p)) == 0
	case kindStructs:
		return f.reflected(p).Len() == 0
	}
	return f.zero(p)
}

// zero tells whether a field has its zero value: of a list nil, not an empty one.
func (f *field) zero(p unsafe.Pointer) bool {
	switch f.kind {
	case kindText:
		return *(*string)(p) == ""
	case kindBool:
		return !*(*bool)(p)
	case kindInt:
		return *(*int64)(p) == 0
	case kindPlainInt:
		return *(*int)(p) == 0
	case kindUint:
		return *(*uint64)(p) == 0
	case kindUint32:
		return *(*uint32)(p) == 0
	case kindBytes:
		return *(*[]byte)(p) == nil
	case kindPointer:
		return *(*unsafe.Pointer)(p) == nil
	case kindStruct:
		for i := range f.elem.fields {
			if in := &f.elem.fields[i]; !in.zero(in.at(p)) {
				return false
			}
		}
		return true
	}
	return f.reflected(p).IsZero()
}

// kind is how a field is encoded.
type kind uint8

const (
	kindText kind = iota + 1
	kindBool
	kindInt      // of 64 bits
	kindPlainInt // an int
	kindUint     // of 64 bits
	kindUint32
	kindFloat
	kindBytes
	kindTexts
	kindTextMap
	kindStruct
	kindPointer // to a struct
	kindStructs // a slice of them
	kindEvents
	kindDecisions
)

// identity tells types apart: two are the same if it is. To look for it in a map takes less than to
// look for a [reflect.Type].
func identity(t reflect.Type) uintptr { return reflect.ValueOf(t).Pointer() }

// planned returns the plan for what v points to, and where that is; nil if there is none.
func (c *Codec) planned(v any) (*plan, unsafe.Pointer) {
	if v == nil {
		return nil, nil
	}
	p := c.plans[identity(reflect.TypeOf(v))]
	if p == nil {
		return nil, nil
	}
	at := reflect.ValueOf(v).UnsafePointer()
	if at == nil {
		return nil, nil
	}
	return p, at
}

// Planned tells whether there is a plan for what v points to.
func (c *Codec) Planned(v any) bool { p, _ := c.planned(v); return p != nil }

// planner makes the plans of a codec.
type planner struct {
	*Codec
	made map[reflect.Type]*plan
}

// planOf makes the plan of a struct and of those in it; nil if it has a field that no plan can
// tell.
func (all *planner) planOf(t reflect.Type) *plan {
	if p, made := all.made[t]; made {
		return p
	}
	p := &plan{typ: t, byName: make(map[string]int), byWord: make([]int8, len(all.wordNumbers)+1)}
	for s := range t.Fields() {
		f, ok := all.fieldOf(s)
		if !ok || len(p.fields) == 64 {
			return nil
		}
		p.byName[f.name] = len(p.fields)
		p.fields, p.keys, p.quoted = append(p.fields, f), append(p.keys, f.key), append(p.quoted,
			f.quoted)
		if n := all.wordNumbers[f.name]; n > 0 {
			p.byWord[n] = int8(len(p.fields))
		}
	}
	all.made[t] = p
	return p
}

func (all *planner) fieldOf(s reflect.StructField) (f field, ok bool) {
	name, options, _ := strings.Cut(s.Tag.Get("json"), ",")
	if s.Anonymous || !s.IsExported() || name == "" || name == "-" ||
		options != "" && options != "omitempty" {
		return f, false
	}
	f = field{
		name: name, key: string(appendText(nil, name)), quoted: `"` + name + `":`, offset: s.Offset,
		typ: s.Type, omit: options != "", unit: all.units[s.Type],
	}
	if f.short = f.key; all.wordNumbers[name] > 0 {
		f.short = string(appendUint(nil, uint64(all.wordNumbers[name])))
	}
	f.kind, f.elem = all.kindOf(s.Type)
	return f, f.kind != 0 && !(f.omit && f.kind == kindStruct)
}

func (all *planner) kindOf(t reflect.Type) (kind, *plan) {
	switch t {
	case all.events.slice:
		return kindEvents, nil
	case all.decisions.slice:
		return kindDecisions, nil
	case reflect.TypeFor[[]string]():
		return kindTexts, nil
	case reflect.TypeFor[map[string]string]():
		return kindTextMap, nil
	}
	if all.special(t) {
		return 0, nil
	}
	structs := func(k kind, t reflect.Type) (kind, *plan) {
		if t.Kind() != reflect.Struct || all.special(t) {
			return 0, nil
		}
		if p := all.planOf(t); p != nil {
			return k, p
		}
		return 0, nil
	}
	switch t.Kind() {
	case reflect.String:
		return kindText, nil
	case reflect.Bool:
		return kindBool, nil
	case reflect.Int64:
		return kindInt, nil
	case reflect.Int:
		return kindPlainInt, nil
	case reflect.Uint64:
		return kindUint, nil
	case reflect.Uint32:
		return kindUint32, nil
	case reflect.Float64:
		return kindFloat, nil
	case reflect.Struct:
		return structs(kindStruct, t)
	case reflect.Pointer:
		return structs(kindPointer, t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return kindBytes, nil
		}
		return structs(kindStructs, t.Elem())
	}
	return 0, nil
}

// special tells whether a type encodes itself, in a way that is not known here.
func (all *planner) special(t reflect.Type) bool {
	p := reflect.PointerTo(t) // has the methods of t too
	own := func(i reflect.Type) bool { return p.Implements(i) }
	text := slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, own)
	return text && all.units[t] == nil || slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.CustomDecoder](),
		reflect.TypeFor[msgpack.Marshaler](), reflect.TypeFor[msgpack.Unmarshaler](),
		reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler](),
	}, own)
}
