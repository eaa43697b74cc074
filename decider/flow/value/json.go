package value

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The keys of the two types that JSON has not, in the form that keeps them.
const (
	durationKey = "$duration"
	instantKey  = "$instant"
)

// Encode writes a value as JSON for the world: compact, keys sorted, durations and instants as
// text. Whole floats are written with ".0" so that Decode reads a float again.
func Encode(v any) ([]byte, error) { return appendJSON(nil, v, false) }

// Decode reads what is one JSON value. A number without a point and an exponent is an integer; one
// that does not fit 64 bits is an error instead of a rounded float.
func Decode(data []byte, l Limits) (any, error) { return decode(data, maxJSON*l.bytes(), l) }

// maxJSON is how many times larger than its value JSON may be: no value that is encoded becomes
// larger.
const maxJSON = 8

func decode(data []byte, most int, l Limits) (any, error) {
	if len(data) > most {
		return nil, fmt.Errorf("%w: %d bytes of JSON", ErrLimit, len(data))
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the JSON is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var x any
	if err := dec.Decode(&x); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("decode JSON: more follows after the value, at byte %d",
			dec.InputOffset())
	}
	return Of(x, l)
}

// Pack writes a value as JSON so that Unpack returns an equal value of the same types. A duration
// is {"$duration": "1h"}, an instant {"$instant": "…"}, and every key of a map that begins with $
// gets another one in front.
func Pack(v any) ([]byte, error) { return appendJSON(nil, v, true) }

// Unpack reads what Pack wrote.
func Unpack(data []byte, l Limits) (any, error) {
	// the packed form is larger
	v, err := decode(data, maxJSON*l.bytes(),
		Limits{Bytes: maxJSON * l.bytes(), Depth: l.depth() + 1})
	if err != nil {
		return nil, err
	}
	if v, err = unpack(v); err != nil {
		return nil, err
	}
	return v, Check(v, l)
}

func unpack(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		for i, e := range v { // nobody else has this list yet
			var err error
			if v[i], err = unpack(e); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		return unpackMap(v)
	}
	return v, nil
}

func unpackMap(m map[string]any) (any, error) {
	if text, ok := m[durationKey].(string); ok && len(m) == 1 {
		return toDuration(text)
	}
	if text, ok := m[instantKey].(string); ok && len(m) == 1 {
		return toInstant(text)
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		if strings.HasPrefix(k, "$") {
			if !strings.HasPrefix(k, "$$") {
				return nil, fmt.Errorf("unpack: the key %q is not one that Pack writes", k)
			}
			k = k[1:]
		}
		var err error
		if out[k], err = unpack(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func appendJSON(b []byte, v any, typed bool) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("encode: %v is no number of a flow", v)
		}
		return append(b, FloatText(v)...), nil
	case string:
		return appendText(b, v)
	case time.Duration:
		return appendTyped(b, durationKey, v, typed)
	case time.Time:
		return appendTyped(b, instantKey, v, typed)
	case []any:
		return appendList(b, v, typed)
	case map[string]any:
		return appendMap(b, v, typed)
	}
	return nil, fmt.Errorf("encode: a %T is no value of a flow", v)
}

func appendTyped(b []byte, key string, v any, typed bool) ([]byte, error) {
	text, err := Text(v)
	if err != nil {
		return nil, err
	}
	if !typed {
		return appendText(b, text)
	}
	b = append(b, `{"`+key+`":`...)
	b, err = appendText(b, text)
	return append(b, '}'), err
}

func appendList(b []byte, v []any, typed bool) (_ []byte, err error) {
	b = append(b, '[')
	for i, e := range v {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, e, typed); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, v map[string]any, typed bool) (_ []byte, err error) {
	b = append(b, '{')
	for i, k := range Keys(v) {
		if i > 0 {
			b = append(b, ',')
		}
		key := k
		if typed && strings.HasPrefix(k, "$") {
			key = "$" + k
		}
		if b, err = appendText(b, key); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = appendJSON(b, v[k], typed); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendText leaves <, > and & as they are, unlike encoding/json.
func appendText(b []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New(
			"encode: a text is not valid UTF-8: encode bytes, for example in base64")
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"'), nil
}
