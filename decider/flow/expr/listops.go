package expr

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/droverhq/drover/decider/flow/value"
)

func size(_ *run, v any) (any, error) {
	n, ok := Length(v)
	if !ok {
		return nil, needs(v, "a string, list or map")
	}
	return int64(n), nil
}

// Length is the number of characters of a text, elements of a list or entries of a map. Nothing
// else has a length.
func Length(v any) (n int, ok bool) {
	switch v := v.(type) {
	case string:
		return utf8.RuneCountInString(v), true
	case []any:
		return len(v), true
	case map[string]any:
		return len(v), true
	}
	return 0, false
}

func (p *args) slice() (transform, error) {
	from, err := p.arg("the index to begin with")
	if err != nil {
		return nil, err
	}
	var to node
	if len(p.words) > 0 {
		if to, err = p.arg("the index to end before"); err != nil {
			return nil, err
		}
	}
	return func(r *run, v any) (any, error) {
		n, ok := Length(v)
		if _, isMap := v.(map[string]any); isMap || !ok {
			return nil, needs(v, "a string or list")
		}
		start, err := position(r, from, n)
		if err != nil {
			return nil, err
		}
		end := n
		if to != nil {
			if end, err = position(r, to, n); err != nil {
				return nil, err
			}
		}
		if end < start {
			return nil, fmt.Errorf("the end %d is before the beginning %d", end, start)
		}
		if s, ok := v.(string); ok {
			return string([]rune(s)[start:end]), nil
		}
		return slices.Clone(v.([]any)[start:end]), nil
	}, nil
}

// position evaluates an index from 0 to n; negative ones count from the end.
func position(r *run, x node, n int) (int, error) {
	i, err := indexOf(r, x)
	if err != nil {
		return 0, err
	}
	at := i
	if i < 0 {
		at = n + i
	}
	if at < 0 || at > n {
		return 0, fmt.Errorf("the index %d is outside of a length of %d", i, n)
	}
	return at, nil
}

func (p *args) remove() (transform, error) {
	x, err := p.arg("a key or an index")
	if err != nil {
		return nil, err
	}
	return func(r *run, v any) (any, error) {
		switch v := v.(type) {
		case map[string]any:
			key, err := textOf(r, x)
			if err != nil {
				return nil, err
			}
			out := make(map[string]any, len(v))
			for k, e := range v {
				if k != key {
					out[k] = e
				}
			}
			return out, nil
		case []any:
			at, err := position(r, x, len(v))
			if err == nil && at == len(v) {
				err = fmt.Errorf("the index %d is outside of a length of %d", at, at)
			}
			if err != nil {
				return nil, err
			}
			return slices.Concat(v[:at], v[at+1:]), nil
		}
		return nil, needs(v, "a list or map")
	}, nil
}

func (p *args) reduce() (transform, error) {
	name := p.name
	return func(r *run, v any) (any, error) {
		list, ok := v.([]any)
		if !ok {
			return nil, needs(v, "a list")
		}
		if name == "sum" {
			return sum(list)
		}
		if len(list) == 0 {
			return nil, errors.New("the list is empty")
		}
		switch name {
		case "first":
			return list[0], nil
		case "last":
			return list[len(list)-1], nil
		case "average":
			total, err := sum(list)
			if err != nil {
				return nil, err
			}
			return arithmetic("/", total, int64(len(list)))
		}
		return extreme(list, name)
	}, nil
}

func sum(list []any) (any, error) {
	if len(list) == 0 {
		return int64(0), nil
	}
	total, err := operand("+", list[0])
	for _, e := range list[1:] {
		if err != nil {
			break
		}
		total, err = arithmetic("+", total, e)
	}
	return total, err
}

func extreme(list []any, name string) (any, error) {
	best := list[0]
	for _, e := range list {
		c, ok := value.Compare(e, best)
		if !ok {
			return nil, fmt.Errorf("%s and %s have no order", describe(e), describe(best))
		}
		if c < 0 && name == "min" || c > 0 && name == "max" {
			best = e
		}
	}
	return best, nil
}

// waitingMerge is the name of a step that merges and waits.
const waitingMerge = "merge wait"

type merging struct {
	kind            string // list, set, map, or "" for what the first operand is
	deep, wait, lax bool
}

func (p *args) merge() (transform, error) {
	var m merging
	for len(p.words) > 0 {
		switch name := p.flag("list", "set", "map", "deep", "wait", "lax"); name {
		case "":
			return nil, p.problem("merge does not take "+p.words[0].Text, usage["merge"])
		case "deep":
			m.deep = true
		case "wait":
			m.wait = true
		case "lax":
			m.lax = true
		default:
			if m.kind != "" && m.kind != name {
				return nil, p.problem("merge cannot give both a "+m.kind+" and a "+name,
					usage["merge"])
			}
			m.kind = name
		}
	}
	if m.deep && (m.kind == "list" || m.kind == "set") {
		return nil, p.problem("deep is for maps", usage["merge"])
	}
	if m.wait {
		p.name = waitingMerge
	}
	return m.merge, nil
}

func (m merging) merge(r *run, v any) (any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, needs(v, "a list of what is to be merged")
	}
	kind := m.kind
	var items []any
	var merged map[string]any
	for i, e := range list {
		e, err := m.operand(r, e, kind)
		switch {
		case err != nil:
			return nil, fmt.Errorf("operand %d: %w", i, err)
		case e == nil:
			continue
		}
		if kind == "" {
			kind = value.TypeName(e)
		}
		switch e := e.(type) {
		case map[string]any:
			if kind != "map" {
				return nil, fmt.Errorf("operand %d is a map among lists", i)
			}
			merged = m.into(merged, e)
		case []any:
			if kind == "map" {
				return nil, fmt.Errorf("operand %d is a list among maps", i)
			}
			if m.deep && !m.lax {
				return nil, errors.New("deep is for maps")
			}
			items = append(items, e...)
		}
		if err := r.env.fits(8 * (len(items) + len(merged))); err != nil {
			return nil, err
		}
		if err := r.env.Spend(Weigh(e) + Weigh(merged)); err != nil { // both are copied
			return nil, err
		}
	}
	return m.result(kind, items, merged)
}

// operand returns a list or a map, or nil for what lax leaves out.
func (m merging) operand(r *run, e any, kind string) (any, error) {
	if f, ok := e.(failed); ok {
		if m.lax && !(m.wait && errors.Is(f.err, ErrUnavailable)) {
			return nil, nil
		}
		return nil, f.err
	}
	if s, ok := e.(string); ok {
		want := kind
		switch {
		case kind == "set" || kind == "" && len(s) > 0 && s[0] == '[':
			want = "list"
		case kind == "" && len(s) > 0 && s[0] == '{':
			want = "map"
		}
		if want != "" {
			if v, err := value.Coerce(s, want, r.env.ValueLimits()); err == nil {
				return v, r.env.Spend(1 + len(s)/256)
			}
		}
	}
	switch e.(type) {
	case []any, map[string]any:
		return e, nil
	}
	if m.lax {
		return nil, nil
	}
	return nil, fmt.Errorf("%s is no list and no map: say lax to leave it out", describe(e))
}

func (m merging) into(old, more map[string]any) map[string]any {
	out := make(map[string]any, len(old)+len(more))
	maps.Copy(out, old)
	for k, e := range more {
		if m.deep {
			e = deepened(out[k], e, m)
		}
		out[k] = e
	}
	return out
}

// deepened joins two maps or two lists; of anything else the later one stays.
func deepened(old, more any, m merging) any {
	switch more := more.(type) {
	case map[string]any:
		if old, ok := old.(map[string]any); ok {
			return m.into(old, more)
		}
	case []any:
		if old, ok := old.([]any); ok {
			return slices.Concat(old, more)
		}
	}
	return more
}

func (m merging) result(kind string, items []any, merged map[string]any) (any, error) {
	switch kind {
	case "":
		return nil, errors.New(
			"there is nothing to merge: say list, set or map if that is no mistake")
	case "map":
		if merged == nil {
			merged = map[string]any{}
		}
		return merged, nil
	case "set":
		return distinct(items)
	}
	return append([]any{}, items...), nil
}

// distinct keeps the first of equal elements; 5 and "5" are not equal here.
func distinct(items []any) (any, error) {
	out := []any{}
	seen := map[string]bool{}
	for _, e := range items {
		key, err := value.Pack(e)
		if err != nil {
			return nil, err
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, e)
		}
	}
	return out, nil
}
