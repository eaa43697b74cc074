package value

import (
	"fmt"
	"maps"
	"slices"
)

// Get returns the part of a value that a path leads to, and whether there is one: a missing key, an
// index after the end and any part of null are simply not there. Asking a text or a number for a
// part of it is an error, as is reading from [].
func Get(v any, p Path) (part any, found bool, err error) {
	for i, s := range p {
		switch {
		case s.Kind == Append:
			return nil, false, at(p[:i+1],
				"nothing can be read after the last element: take it with the transform last")
		case v == nil:
			return nil, false, nil
		case s.Kind == Key:
			m, ok := v.(map[string]any)
			if !ok {
				return nil, false, at(p[:i+1], "a %s has no keys", TypeName(v))
			}
			if v, ok = m[s.Key]; !ok {
				return nil, false, nil
			}
		default:
			l, ok := v.([]any)
			if !ok {
				return nil, false, at(p[:i+1], "a %s has no elements", TypeName(v))
			}
			if s.Index >= len(l) {
				return nil, false, nil
			}
			v = l[s.Index]
		}
	}
	return v, true, nil
}

// Set returns a value like v in which the part at p is part. Containers on the way are created
// where there is none or null: a map for a key; a list for [], [-1] and [0]. An index may be that
// of an element or the next one. What lies along the path is copied, the rest is shared; v stays as
// it was.
func Set(v any, p Path, part any) (any, error) {
	return set(v, p, 0, part)
}

func set(v any, p Path, i int, part any) (any, error) {
	if i == len(p) {
		return part, nil
	}
	if p[i].Kind == Key {
		m, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, at(p[:i+1], "a %s has no keys: clear it first if it is to become a map",
				TypeName(v))
		}
		inner, err := set(m[p[i].Key], p, i+1, part)
		if err != nil {
			return nil, err
		}
		m = maps.Clone(m)
		if m == nil {
			m = map[string]any{}
		}
		m[p[i].Key] = inner
		return m, nil
	}
	l, ok := v.([]any)
	if !ok && v != nil {
		return nil, at(p[:i+1], "a %s has no elements: clear it first if it is to become a list",
			TypeName(v))
	}
	n := p[i].Index
	if p[i].Kind == Append {
		n = len(l)
	}
	if n > len(l) {
		return nil, at(p[:i+1], "the list has %d elements: use [] to append", len(l))
	}
	var old any
	if n < len(l) {
		old = l[n]
	}
	inner, err := set(old, p, i+1, part)
	if err != nil {
		return nil, err
	}
	l = slices.Clone(l)
	if n == len(l) {
		return append(l, inner), nil
	}
	l[n] = inner
	return l, nil
}

// Clear returns a value like v without the part at p, and whether there was one. Elements after a
// cleared one move up.
func Clear(v any, p Path) (any, bool, error) {
	if len(p) == 0 {
		return nil, v != nil, nil
	}
	last := len(p) - 1
	holder, found, err := Get(v, p[:last])
	if err != nil || !found {
		return v, false, err
	}
	if _, found, err = Get(holder, p[last:]); err != nil || !found {
		if err != nil {
			err = at(p, "there is nothing to clear in a %s", TypeName(holder))
		}
		return v, false, err
	}
	if p[last].Kind == Key {
		m := maps.Clone(holder.(map[string]any))
		delete(m, p[last].Key)
		v, err = Set(v, p[:last], m)
		return v, true, err
	}
	n := p[last].Index
	l := holder.([]any)
	v, err = Set(v, p[:last], slices.Concat(l[:n], l[n+1:]))
	return v, true, err
}

func at(p Path, format string, args ...any) error {
	return fmt.Errorf("%s: %s", p, fmt.Sprintf(format, args...))
}
