package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrUnknownField is wrapped by the errors of [Codec.DecodeStrict] about a field that there is not.
var ErrUnknownField = errors.New("unknown field")

// DecodeStrict is [Codec.Decode] for what others send: a JSON body with a field that v does not
// have, at any depth, is an error, which names the field and the one that was probably meant (E6).
// Fields of an unknown decision are not judged. In msgpack unknown fields are passed over.
func (c *Codec) DecodeStrict(b []byte, v any, owned bool) error {
	if !IsJSON(b) {
		return c.Decode(b, v, owned)
	}
	if c.JSONByPlan(b, v, owned, true) {
		return nil
	}
	if err := c.unmarshalJSON(b, v, owned); err != nil {
		return err
	}
	if at, err := c.unknownField(b, reflect.TypeOf(v)); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, &misplaced{at: at, err: err})
	}
	return nil
}

var keyOfJSON = regexp.MustCompile(`"([A-Za-z]+)"\s*:`)

// CheckUTF8 is an error that wraps [ErrMalformed] for a JSON body with a byte that is not UTF-8,
// and names the field. The decoder would put U+FFFD in its place, and two ids that differ there
// only would be one (E15).
func CheckUTF8(b []byte) error {
	if utf8.Valid(b) || !IsJSON(b) {
		return nil
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	field := ""
	if keys := keyOfJSON.FindAllSubmatch(b[:at], -1); len(keys) > 0 {
		field = string(keys[len(keys)-1][1]) + ": "
	}
	return fmt.Errorf(
		"%w: %sthe byte %#02x at offset %d is not UTF-8: send text as UTF-8, and bytes in base64",
		ErrMalformed, field, b[at], at)
}

// unknownField finds the first field of a JSON value that its type does not have, as a path from t.
// The body is one that t takes.
func (c *Codec) unknownField(b json.RawMessage, t reflect.Type) (at string, err error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == c.decisions.slice.Elem():
		return c.unknownInDecision(b)
	case ownJSON(t):
		return "", nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.unknownInStruct(b, t)
	case reflect.Slice:
		var parts []json.RawMessage
		if t.Elem().Kind() == reflect.Uint8 || json.Unmarshal(b, &parts) != nil {
			return "", nil
		}
		for i, part := range parts {
			if at, err := c.unknownField(part, t.Elem()); err != nil {
				return fmt.Sprintf("[%d]%s", i, join(at)), err
			}
		}
	case reflect.Map:
		var parts map[string]json.RawMessage
		if json.Unmarshal(b, &parts) != nil {
			return "", nil
		}
		for _, name := range sorted(parts) {
			if at, err := c.unknownField(parts[name], t.Elem()); err != nil {
				return name + join(at), err
			}
		}
	}
	return "", nil
}

func (c *Codec) unknownInStruct(b json.RawMessage, t reflect.Type) (at string, err error) {
	var parts map[string]json.RawMessage
	if json.Unmarshal(b, &parts) != nil {
		return "", nil // null
	}
	types, names := fieldsOf(t)
	for _, name := range sorted(parts) {
		typ, known := types[name]
		if !known { // the library finds names in any case
			i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
			if i < 0 {
				return name, unknownError(name, names)
			}
			typ = types[names[i]]
		}
		if at, err := c.unknownField(parts[name], typ); err != nil {
			return name + join(at), err
		}
	}
	return "", nil
}

func (c *Codec) unknownInDecision(b json.RawMessage) (at string, err error) {
	if at, err := c.unknownInStruct(b, reflect.TypeFor[decisionJSON]()); err != nil {
		return at, err
	}
	var w decisionJSON
	if json.Unmarshal(b, &w) != nil {
		return "", nil
	}
	create, known := c.decisions.types[w.Type]
	if !known || len(w.Attributes) == 0 {
		return "", nil // refused by its type
	}
	if at, err := c.unknownField(w.Attributes, reflect.TypeOf(create())); err != nil {
		return "attributes" + join(at), err
	}
	return "", nil
}

// decisionJSON is the form of a decision.
type decisionJSON struct {
	Type       string          `json:"type"`
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// fieldsOf are the fields of a struct by their names in JSON, and these in order.
func fieldsOf(t reflect.Type) (types map[string]reflect.Type, names []string) {
	types = map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		types[name], names = f.Type, append(names, name)
	}
	return types, names
}

func sorted(parts map[string]json.RawMessage) []string {
	names := make([]string, 0, len(parts))
	for name := range parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func unknownError(name string, names []string) error {
	if near := Nearest(name, names); near != "" {
		return fmt.Errorf("%w %q; did you mean %q?", ErrUnknownField, name, near)
	}
	slices.Sort(names)
	return fmt.Errorf("%w %q; there are %s", ErrUnknownField, name, strings.Join(names, ", "))
}

// Nearest is the name that somebody probably meant; empty if none is near. A third of the letters
// may be wrong, an exchange of two counting once.
func Nearest(got string, names []string) string {
	best, least := "", len(got)/3+1
	for _, name := range names {
		if d := distance(strings.ToLower(got), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, taken out, changed, or exchanged with the next, to
// make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var before, above, row [65]int
	for j := range len(b) + 1 {
		above[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			d := above[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
		}
		before, above = above, row
	}
	return above[len(b)]
}
