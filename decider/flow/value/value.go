// Package value has the values that a flow computes with: plain Go data of nine types.
//
//	nil  bool  int64  float64  string  []any  map[string]any  time.Duration  time.Time
//
// Invariants, which Of, Decode, Unpack and FromYAML establish and everything else here relies on
// and keeps:
//
//   - no other types occur, at any depth; integers fit 64 bits, floats are finite, texts are valid
//     UTF-8;
//   - instants are in UTC, have no monotonic reading and lie in the years 0 to 9999;
//   - a value is at most so deep and so large as its [Limits] say;
//   - a value is never changed once it is made. Set and Clear copy what lies along the path and
//     share the rest, so a variable may be handed out without a copy, and Copy is for callers who
//     want to change something in place.
//
// There are two forms in JSON. Encode is for the world: durations and instants travel as text. Pack
// is for the state of a run: it keeps these two types, because a duration that came back as text
// would be ordered as text ("90s" after "2m").
//
// The package is pure. All of decider/flow may use it.
package value

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/droverhq/drover/internal/duration"
)

// Defaults of Limits.
const (
	DefaultBytes = 1 << 20
	DefaultDepth = 64
)

// Limits bound a value.
type Limits struct {
	Bytes int // as Size counts. Defaults to DefaultBytes
	Depth int // lists and maps inside each other. Defaults to DefaultDepth
}

// ErrLimit is what errors about too large or too deep values are.
var ErrLimit = errors.New("too large")

// Of turns decoded YAML or JSON and the usual Go types into a value and checks it. What has no
// place in a flow (bytes, structs, channels …) is an error.
func Of(x any, l Limits) (any, error) {
	m := meter{left: l.bytes(), depth: l.depth()}
	return m.of(x, 0)
}

// Check reports whether a value is within the limits. Its cost is bounded by them.
func Check(v any, l Limits) error {
	_, err := Measure(v, l)
	return err
}

// Measure is Check that tells of how many parts the value is made: scalars, lists and maps, which
// is what the check costs.
func Measure(v any, l Limits) (parts int, err error) {
	m := meter{left: l.bytes(), depth: l.depth()}
	err = m.walk(v, 0)
	return m.parts, err
}

// Size is about what a value takes in JSON: 8 bytes for a scalar or an element, texts and keys by
// their length.
func Size(v any) int {
	switch v := v.(type) {
	case string:
		return 8 + len(v)
	case []any:
		n := 8
		for _, e := range v {
			n += Size(e)
		}
		return n
	case map[string]any:
		n := 8
		for k, e := range v {
			n += len(k) + Size(e)
		}
		return n
	}
	return 8
}

// Replace copies a value, with what leaf returns in the place of everything that is no list and no
// map. The copy shares no list and no map with it.
func Replace(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = Replace(e, leaf)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = Replace(e, leaf)
		}
		return out
	}
	return leaf(v)
}

// TypeName is the word for the type of a value in messages: null, boolean, integer, double, string,
// list, map, duration, instant.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "double"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	case time.Duration:
		return "duration"
	case time.Time:
		return "instant"
	}
	return fmt.Sprintf("%T", v)
}

func (l Limits) bytes() int { return positiveOr(l.Bytes, DefaultBytes) }
func (l Limits) depth() int { return positiveOr(l.Depth, DefaultDepth) }

func positiveOr(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

type meter struct{ left, depth, parts int }

func (m *meter) spend(n, depth int) error {
	switch m.left -= n; {
	case m.left < 0:
		return fmt.Errorf("%w: the value has too many bytes", ErrLimit)
	case depth > m.depth:
		return fmt.Errorf("%w: more than %d lists and maps are inside each other",
			ErrLimit, m.depth)
	}
	return nil
}

func (m *meter) walk(v any, depth int) error {
	m.parts++
	switch v := v.(type) {
	case string:
		return m.spend(8+len(v), depth)
	case []any:
		if err := m.spend(8, depth+1); err != nil {
			return err
		}
		for _, e := range v {
			if err := m.walk(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		if err := m.spend(8, depth+1); err != nil {
			return err
		}
		for k, e := range v {
			if err := m.spend(len(k), depth+1); err != nil {
				return err
			}
			if err := m.walk(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return m.spend(8, depth)
}

func (m *meter) of(x any, depth int) (any, error) {
	switch x := x.(type) {
	case []any:
		return list(m, x, depth)
	case []string:
		return list(m, x, depth)
	case map[string]any:
		return mapping(m, x, depth)
	case map[string]string:
		return mapping(m, x, depth)
	case map[any]any:
		keyed := make(map[string]any, len(x))
		for k, e := range x {
			key, err := Text(k)
			if n, ok := k.(int); ok {
				key, err = strconv.Itoa(n), nil
			}
			if err != nil {
				return nil, fmt.Errorf("a key of a map is a %T, want a text", k)
			}
			if _, ok := keyed[key]; ok {
				return nil, fmt.Errorf("two keys of a map are the same text %q", key)
			}
			keyed[key] = e
		}
		return mapping(m, keyed, depth)
	}
	v, err := scalar(x)
	if err != nil {
		return nil, err
	}
	s, _ := v.(string)
	return v, m.spend(8+len(s), depth)
}

func list[T any](m *meter, x []T, depth int) (any, error) {
	if err := m.spend(8, depth+1); err != nil {
		return nil, err
	}
	out := make([]any, len(x))
	for i, e := range x {
		var err error
		if out[i], err = m.of(e, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func mapping[T any](m *meter, x map[string]T, depth int) (any, error) {
	if err := m.spend(8, depth+1); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(x))
	for k, e := range x {
		if !utf8.ValidString(k) {
			return nil, fmt.Errorf("the key %q is not valid UTF-8", k)
		}
		if err := m.spend(len(k), depth+1); err != nil {
			return nil, err
		}
		var err error
		if out[k], err = m.of(e, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func scalar(x any) (any, error) {
	switch x := x.(type) {
	case nil, bool, int64:
		return x, nil
	case int:
		return int64(x), nil
	case int8:
		return int64(x), nil
	case int16:
		return int64(x), nil
	case int32:
		return int64(x), nil
	case uint8:
		return int64(x), nil
	case uint16:
		return int64(x), nil
	case uint32:
		return int64(x), nil
	case uint:
		return unsigned(uint64(x))
	case uint64:
		return unsigned(x)
	case float32:
		return finite(float64(x))
	case float64:
		return finite(x)
	case json.Number:
		return number(string(x))
	case string:
		if !utf8.ValidString(x) {
			return nil, errors.New("a text is not valid UTF-8: encode bytes, for example in base64")
		}
		return x, nil
	case time.Duration:
		return span(x)
	case time.Time:
		return instant(x)
	}
	return nil, fmt.Errorf(
		"a %T is no value of a flow: use null, booleans, numbers, texts, lists, maps, durations and instants",
		x)
}

func unsigned(n uint64) (any, error) {
	if n > math.MaxInt64 {
		return nil, fmt.Errorf("the integer %d does not fit 64 bits: send it as text", n)
	}
	return int64(n), nil
}

func finite(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v is no number of a flow", f)
	}
	return f, nil
}

// span refuses the two lengths that have a meaning of their own in package duration.
func span(d time.Duration) (any, error) {
	if d == duration.Forever || d == math.MinInt64 {
		return nil, errors.New("a duration is too long: the longest is about 106751 days")
	}
	return d, nil
}

func instant(t time.Time) (any, error) {
	t = t.UTC().Round(0)
	if t.Year() < 0 || t.Year() > 9999 {
		return nil, fmt.Errorf("the instant is in the year %d: years go from 0 to 9999", t.Year())
	}
	return t, nil
}

// Keys returns the keys of a map in their order, so that what is computed from a map is always the
// same.
func Keys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
