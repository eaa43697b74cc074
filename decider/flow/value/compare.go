package value

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// Truth is whether a value counts as true: null, false, 0, the empty text, the empty list and the
// empty map do not, anything else does, the text "false" and a duration of zero (which may have
// travelled as the text "0s") included.
func Truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// Equal compares with coercion: numbers by their worth, a number, boolean, duration or instant with
// a text that can be read as one, two texts exactly ("5" is not "5.0", though 5 equals both), lists
// and maps by their elements. Null equals null only.
func Equal(a, b any) bool {
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			return s == t
		}
		a, b = b, a // the text, if there is one, is on the right
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case []any:
		return equalLists(a, b)
	case map[string]any:
		return equalMaps(a, b)
	case bool:
		other, err := toBoolean(b)
		return err == nil && other == a
	}
	c, ok := Compare(a, b)
	return ok && c == 0
}

func equalLists(a []any, b any) bool {
	other, ok := b.([]any)
	if !ok || len(a) != len(other) {
		return false
	}
	for i := range a {
		if !Equal(a[i], other[i]) {
			return false
		}
	}
	return true
}

func equalMaps(a map[string]any, b any) bool {
	other, ok := b.(map[string]any)
	if !ok || len(a) != len(other) {
		return false
	}
	for k, e := range a {
		o, ok := other[k]
		if !ok || !Equal(e, o) {
			return false
		}
	}
	return true
}

// Compare orders two values: -1, 0 or 1, and whether they can be ordered at all. Numbers are
// ordered by their worth, a number and a numeric text too, two texts in natural order, durations
// and instants among themselves and with texts that can be read as such. Nothing else can be
// ordered, null least of all.
func Compare(a, b any) (order int, ok bool) {
	switch x := a.(type) {
	case int64, float64:
		y, isNumber := Numeric(b)
		if !isNumber {
			return 0, false
		}
		return compareNumbers(x, y)
	case time.Duration:
		y, err := toDuration(b)
		if err != nil {
			return 0, false
		}
		return cmp.Compare(x, y), true
	case time.Time:
		y, err := toInstant(b)
		if err != nil {
			return 0, false
		}
		return x.Compare(y), true
	case string:
		switch y := b.(type) {
		case string:
			return Natural(x, y), true
		case int64, float64, time.Duration, time.Time:
			order, ok = Compare(b, a)
			return -order, ok
		}
	}
	return 0, false
}

// compareNumbers is exact where a conversion would round.
func compareNumbers(a, b any) (int, bool) {
	switch x := a.(type) {
	case int64:
		switch y := b.(type) {
		case int64:
			return cmp.Compare(x, y), true
		case float64:
			order, ok := compareNumbers(y, x)
			return -order, ok
		}
	case float64:
		switch y := b.(type) {
		case float64:
			return cmp.Compare(x, y), !math.IsNaN(x) && !math.IsNaN(y)
		case int64:
			return compareMixed(x, y)
		}
	}
	return 0, false
}

func compareMixed(f float64, n int64) (int, bool) {
	switch {
	case math.IsNaN(f):
		return 0, false
	case f >= 1<<63:
		return 1, true
	case f < -1<<63:
		return -1, true
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(int64(whole), n); c != 0 {
		return c, true
	}
	return cmp.Compare(f, whole), true
}

// Natural orders texts with their runs of digits as numbers: "9" before "10", "v1.9" before
// "v1.10". It is a total order: 0 is for equal texts only, so "01" and "1" differ.
func Natural(a, b string) int {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		if !isDigit(a[i]) || !isDigit(b[j]) {
			if a[i] != b[j] {
				return cmp.Compare(a[i], b[j])
			}
			i, j = i+1, j+1
			continue
		}
		x, y := digits(a[i:]), digits(b[j:])
		m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
			return c
		}
		i, j = i+len(x), j+len(y)
	}
	return cmp.Or(cmp.Compare(len(a)-i, len(b)-j), cmp.Compare(a, b))
}

func digits(s string) string {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	return s[:end]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
