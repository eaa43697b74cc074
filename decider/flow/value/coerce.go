package value

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/droverhq/drover/decider/flow/syntax"
	"github.com/droverhq/drover/internal/duration"
)

// types are the names that Coerce knows.
var types = []string{"integer", "double", "boolean", "string", "map", "list", "duration", "instant"}

// CheckType says whether Coerce knows a name, and if not which one was probably meant.
func CheckType(name string) error {
	if slices.Contains(types, name) {
		return nil
	}
	hint := "types are " + strings.Join(types, ", ")
	if near := syntax.Nearest(name, types); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return fmt.Errorf("there is no type %s: %s", syntax.Quote(name), hint)
}

// Coerce turns a value into one of the named type, or says why that cannot be done without a loss:
// 1.5 is no integer, a map is no string, null is nothing but null. Texts are read: numbers, true
// and false (also yes and no), durations, RFC 3339 instants, and for lists and maps YAML or JSON.
func Coerce(v any, name string, l Limits) (any, error) {
	if err := CheckType(name); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, fmt.Errorf("null is no %s: give a default, as in ${x} ?? 0", name)
	}
	switch name {
	case "integer":
		return toInteger(v)
	case "double":
		return toDouble(v)
	case "boolean":
		return toBoolean(v)
	case "string":
		return Text(v)
	case "duration":
		return toDuration(v)
	case "instant":
		return toInstant(v)
	}
	return toContainer(v, name, l)
}

// Text is the text that a scalar becomes when it is put into a text. Lists, maps and null have
// none.
func Text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return FloatText(v), nil
	case time.Duration:
		if _, err := span(v); err != nil {
			return "", err
		}
		return duration.String(v), nil
	case time.Time:
		if _, err := instant(v); err != nil {
			return "", err
		}
		return v.UTC().Format(time.RFC3339Nano), nil
	case nil:
		return "", errors.New("null is no text: give a default, as in ${x} ?? \"\"")
	case []any, map[string]any:
		return "", fmt.Errorf("a %s is no text: make one with the transform json encode, or "+
			"take a part of it", TypeName(v))
	}
	return "", fmt.Errorf("a %T is no value of a flow", v)
}

// FloatText writes a float so that it is read as the same float and never as an integer.
func FloatText(f float64) string {
	format := byte('e')
	if abs := math.Abs(f); abs == 0 || abs >= 1e-6 && abs < 1e21 {
		format = 'f'
	}
	s := strconv.FormatFloat(f, format, -1, 64)
	if format == 'f' && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Numeric returns a number as it is, and a text that is one as the number it is; white space around
// it does not matter.
func Numeric(v any) (any, bool) {
	switch v := v.(type) {
	case int64, float64:
		return v, true
	case string:
		n, err := number(strings.TrimSpace(v))
		return n, err == nil
	}
	return nil, false
}

// number reads -?digits[.digits][e[+-]digits]; what has neither a point nor an exponent is an
// integer.
func number(s string) (any, error) {
	at := 0
	if strings.HasPrefix(s, "-") {
		at++
	}
	whole := digits(s[at:])
	if whole == "" {
		return nil, notNumber(s)
	}
	at += len(whole)
	if at == len(s) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the integer %s does not fit 64 bits: send it as text",
				syntax.Clip(s))
		}
		return n, nil
	}
	if s[at] == '.' {
		fraction := digits(s[at+1:])
		if fraction == "" {
			return nil, notNumber(s)
		}
		at += 1 + len(fraction)
	}
	if at < len(s) && s[at]|0x20 == 'e' {
		at++
		if at < len(s) && (s[at] == '+' || s[at] == '-') {
			at++
		}
		exponent := digits(s[at:])
		if exponent == "" {
			return nil, notNumber(s)
		}
		at += len(exponent)
	}
	if at < len(s) {
		return nil, notNumber(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large for a double: send it as text",
			syntax.Clip(s))
	}
	return f, nil
}

func notNumber(s string) error { return fmt.Errorf("%s is no number", syntax.Quote(s)) }

func toInteger(v any) (int64, error) {
	n, ok := Numeric(v)
	if !ok {
		hint := "write digits only"
		if s, ok := v.(string); ok {
			s = strings.TrimPrefix(strings.TrimSpace(s), "-")
			if s != "" && digits(s) == s {
				hint = "it does not fit 64 bits"
			}
		}
		return 0, cannot(v, "integer", hint)
	}
	switch n := n.(type) {
	case int64:
		return n, nil
	case float64:
		if n == math.Trunc(n) && n >= -1<<63 && n < 1<<63 {
			return int64(n), nil
		}
	}
	return 0, cannot(v, "integer", "it is not whole or does not fit 64 bits")
}

func toDouble(v any) (float64, error) {
	n, ok := Numeric(v)
	if !ok {
		return 0, cannot(v, "double", "write a number such as 1.5")
	}
	if i, ok := n.(int64); ok {
		return float64(i), nil
	}
	return n.(float64), nil
}

func toBoolean(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true", "yes":
			return true, nil
		case "false", "no":
			return false, nil
		}
	}
	return false, cannot(v, "boolean", "write true or false")
}

func toDuration(v any) (time.Duration, error) {
	switch v := v.(type) {
	case time.Duration:
		return v, nil
	case string:
		text, negative := strings.CutPrefix(strings.TrimSpace(v), "-")
		d, err := duration.Parse(text)
		if err != nil {
			return 0, err
		}
		if negative {
			d = -d
		}
		return d, nil
	}
	return 0, cannot(v, "duration", "write a number with a unit, such as 10s or 1h 30m")
}

func toInstant(v any) (time.Time, error) {
	switch v := v.(type) {
	case time.Time:
		return v.UTC(), nil
	case string:
		t, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(v))
		if err == nil {
			if v, err := instant(t); err == nil {
				return v.(time.Time), nil
			}
		}
	}
	return time.Time{}, cannot(v, "instant",
		"write date, time and zone, such as 2026-03-29T01:30:00Z")
}

func toContainer(v any, name string, l Limits) (any, error) {
	if TypeName(v) == name {
		return v, nil
	}
	text, ok := v.(string)
	if !ok {
		return nil, cannot(v, name, "")
	}
	read, err := FromYAML(text, l)
	if err != nil {
		return nil, fmt.Errorf("%s is no %s: %w", syntax.Quote(text), name, err)
	}
	if TypeName(read) != name {
		return nil, cannot(v, name, "write it as in YAML or JSON: [1, 2] or {a: 1}")
	}
	return read, nil
}

func cannot(v any, name, hint string) error {
	what := "a " + TypeName(v)
	if text, err := Text(v); err == nil {
		what = "the " + TypeName(v) + " " + syntax.Quote(text)
	}
	if hint != "" {
		hint = ": " + hint
	}
	return fmt.Errorf("%s is no %s%s", what, name, hint)
}
