// Package requirement reads and judges what a change of a state key asks of the value that is
// there.
package requirement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// Requirement is what a change of a state key asks of the value that is there. It is written as
// JSON, in the words that conditions of flows have:
//
//	42, "text"                                  the value is this one, which is there
//	{"equals": true}                            the same, for values of any type
//	{"when": "absent"}                          the key does not exist
//	{"any": [{"when": "absent"}, {"equals": 1}]}
//
// Keys of a map, which all have to hold: when (absent, absent_or_null, present, present_non_null,
// truthy, falsy, always, never), equals, less-than, less-than-or-equal-to, greater-than,
// greater-than-or-equal-to, not, check, any, all. Numbers are compared by their worth, a number or
// a boolean also with a text that reads as one. Only numbers have an order. A key that is absent
// passes nothing but when and not.
//
// Considered: all of the conditions of flows. Patterns, sizes and expressions would bring their
// language and its budgets into the service; who needs them reads the key, judges, and requires
// that the value is still the one that was read.
type Requirement struct {
	holds func(stateValue) bool
}

// maxRequireDepth bounds how deep predicates may be inside each other.
const maxRequireDepth = 32

// stateValue is what is judged.
type stateValue struct {
	there bool
	v     any
}

// Parse reads a requirement. An empty one is nil, which always holds.
func Parse(p schemas.Payload) (*Requirement, error) {
	if len(p) == 0 {
		return nil, nil
	}
	v, err := decodeJSON(p)
	if err != nil {
		return nil, errors.New(
			"it is no JSON: write a value, or a map such as {\"when\": \"absent\"}")
	}
	if v == nil {
		return nil, nil
	}
	holds, err := parseRequire(v, 0)
	if err != nil {
		return nil, err
	}
	return &Requirement{holds}, nil
}

// Holds tells whether the requirement is met by a value, or by none.
func (r *Requirement) Holds(value schemas.Payload, there bool) bool {
	if r == nil {
		return true
	}
	s := stateValue{there: there}
	if there {
		s.v = stateOf(value)
	}
	return r.holds(s)
}

// stateOf is a value as it is compared: text that is no JSON is a text, and other bytes are equal
// to themselves.
func stateOf(p schemas.Payload) any {
	switch v, err := decodeJSON(p); {
	case len(p) == 0:
		return nil
	case err == nil:
		return v
	case utf8.Valid(p):
		return string(p)
	}
	return []byte(p)
}

func decodeJSON(p []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(p))
	d.UseNumber()
	if err = d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() || len(bytes.TrimSpace(p[d.InputOffset():])) > 0 {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

func parseRequire(v any, depth int) (func(stateValue) bool, error) {
	if depth > maxRequireDepth {
		return nil, fmt.Errorf("more than %d predicates are inside each other", maxRequireDepth)
	}
	switch v := v.(type) {
	case map[string]any:
		return parseRequireMap(v, depth)
	case []any:
		return nil, errors.New("a list is no predicate: write any or all before it, or equals to compare with it")
	case bool:
		return nil, fmt.Errorf("%v alone can mean two things: write {\"equals\": %v}, or {\"when\": \"always\"}", v, v)
	case nil:
		return nil, errors.New("null is no predicate: write {\"when\": \"absent_or_null\"}")
	}
	return equalTo(v), nil
}

func parseRequireMap(m map[string]any, depth int) (func(stateValue) bool, error) {
	if len(m) == 0 {
		return nil, errors.New(
			"there is nothing to check: write, for example, {\"when\": \"absent\"} or {\"equals\": 5}")
	}
	var checks []func(stateValue) bool
	for _, key := range slices.Sorted(maps.Keys(m)) {
		c, err := parseCheck(key, m[key], depth)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		checks = append(checks, c)
	}
	return func(s stateValue) bool {
		return !slices.ContainsFunc(checks, func(c func(stateValue) bool) bool { return !c(s) })
	}, nil
}

const requireKeys = "when, equals, less-than, less-than-or-equal-to, greater-than, " +
	"greater-than-or-equal-to, not, check, any, all"

func parseCheck(key string, v any, depth int) (func(stateValue) bool, error) {
	switch key {
	case "when":
		return parseWhen(v)
	case "equals":
		if v == nil {
			return nil, errors.New(
				"nothing is compared with null: write {\"when\": \"absent_or_null\"}")
		}
		return equalTo(v), nil
	case "less-than", "less-than-or-equal-to", "greater-than", "greater-than-or-equal-to":
		return parseOrder(key, v)
	case "not", "check":
		inner, err := parseRequire(v, depth+1)
		if err != nil || key == "check" {
			return inner, err
		}
		return func(s stateValue) bool { return !inner(s) }, nil
	case "any", "all":
		return parseSeveral(key, v, depth)
	}
	return nil, errors.New("no such check for a change of a state key; there are " + requireKeys)
}

func parseSeveral(key string, v any, depth int) (func(stateValue) bool, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, errors.New("want a list of predicates")
	}
	var inner []func(stateValue) bool
	for i, e := range list {
		c, err := parseRequire(e, depth+1)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		inner = append(inner, c)
	}
	decides := key == "any"
	return func(s stateValue) bool {
		return slices.ContainsFunc(inner,
			func(c func(stateValue) bool) bool { return c(s) == decides }) == decides
	}, nil
}

func parseWhen(v any) (func(stateValue) bool, error) {
	word, _ := v.(string)
	switch word {
	case "absent":
		return func(s stateValue) bool { return !s.there }, nil
	case "absent_or_null":
		return func(s stateValue) bool { return !s.there || s.v == nil }, nil
	case "present":
		return func(s stateValue) bool { return s.there }, nil
	case "present_non_null":
		return func(s stateValue) bool { return s.there && s.v != nil }, nil
	case "truthy":
		return func(s stateValue) bool { return s.there && truthy(s.v) }, nil
	case "falsy":
		return func(s stateValue) bool { return !s.there || !truthy(s.v) }, nil
	case "always":
		return func(stateValue) bool { return true }, nil
	case "never":
		return func(stateValue) bool { return false }, nil
	}
	return nil, errors.New(
		"want absent, absent_or_null, present, present_non_null, truthy, falsy, always or never")
}

func parseOrder(key string, v any) (func(stateValue) bool, error) {
	than, ok := numberOf(v)
	if !ok {
		return nil, errors.New("want a number")
	}
	less, orEqual := strings.HasPrefix(key, "less"), strings.HasSuffix(key, "or-equal-to")
	return func(s stateValue) bool {
		n, ok := numberOf(s.v)
		if !ok {
			return false
		}
		c := n.Cmp(than)
		return c < 0 && less || c > 0 && !less || c == 0 && orEqual
	}, nil
}

func equalTo(want any) func(stateValue) bool {
	return func(s stateValue) bool { return s.there && equalState(want, s.v) }
}

func equalState(a, b any) bool {
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		switch y := b.(type) {
		case string:
			return x == y
		case json.Number, bool:
			return equalState(b, a)
		}
		return false
	case bool:
		switch y := b.(type) {
		case bool:
			return x == y
		case string:
			return y == strconv.FormatBool(x)
		}
		return false
	case json.Number:
		if a == b {
			return true
		}
		m, ok1 := numberOf(a)
		n, ok2 := numberOf(b)
		return ok1 && ok2 && m.Cmp(n) == 0
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, equalState)
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, equalState)
	}
	return false
}

// numberOf reads a number, or a text that is one. Exponents are bounded: a short text must not be a
// number of a million digits.
func numberOf(v any) (*big.Rat, bool) {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = string(v)
	case string:
		if !json.Valid([]byte(v)) {
			return nil, false
		}
		text = v
	}
	if text == "" || len(text) > 400 || strings.ContainsAny(text, `"[{tfn `) {
		return nil, false
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil ||
		f == 0 && strings.ContainsAny(text, "eE") || math.IsInf(f, 0) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case json.Number:
		f, err := v.Float64()
		return err != nil || f != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	case []byte:
		return len(v) > 0
	}
	return true
}
