package schedules

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/droverhq/drover/schemas"
)

// values are what placeholders in an input stand for.
type values struct {
	slot, lastSlot string
	lastResult     schemas.Payload
}

// of returns what a placeholder stands for, as JSON.
func (v *values) of(name string) (json.RawMessage, bool) {
	switch name {
	case "slot":
		return quoted(v.slot), true
	case "last.slot":
		if v.lastSlot == "" {
			return json.RawMessage("null"), true
		}
		return quoted(v.lastSlot), true
	case "last.result":
		switch r := v.lastResult; {
		case len(r) == 0:
			return json.RawMessage("null"), true
		case json.Valid(r):
			return json.RawMessage(r), true
		case utf8.Valid(r):
			return quoted(string(r)), true
		default:
			return json.RawMessage("null"), true
		}
	}
	return nil, false
}

// fill puts the values into an input that is JSON. A text that is one placeholder becomes its
// value; inside a longer text a value stands as text. All else stays as it is.
func fill(input schemas.Payload, v *values) (schemas.Payload, error) {
	if !bytes.Contains(input, []byte("${")) || !json.Valid(input) {
		return input, nil
	}
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(replace(tree, v)); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func replace(tree any, v *values) any {
	switch t := tree.(type) {
	case map[string]any:
		for k, x := range t {
			t[k] = replace(x, v)
		}
	case []any:
		for i, x := range t {
			t[i] = replace(x, v)
		}
	case string:
		return inText(t, v)
	}
	return tree
}

func inText(text string, v *values) any {
	var b strings.Builder
	for rest := text; ; {
		before, name, after, ok := placeholder(rest)
		if !ok {
			b.WriteString(rest)
			return b.String()
		}
		value, known := v.of(name)
		switch {
		case !known:
			b.WriteString(before + "${" + name + "}")
		case before == "" && after == "" && rest == text:
			return value
		default:
			b.WriteString(before + asText(value))
		}
		rest = after
	}
}

// placeholder finds the first ${name}.
func placeholder(text string) (before, name, after string, ok bool) {
	before, rest, ok := strings.Cut(text, "${")
	if !ok {
		return text, "", "", false
	}
	name, after, ok = strings.Cut(rest, "}")
	return before, name, after, ok
}

// asText is a value inside a longer text: a text without its quotes, nothing for null, else JSON.
func asText(value json.RawMessage) string {
	var s *string
	if err := json.Unmarshal(value, &s); err == nil {
		if s == nil {
			return ""
		}
		return *s
	}
	return string(value)
}

func quoted(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string always can be
		panic(err)
	}
	return b
}

// checkPlaceholders refuses those that are meant for schedules and do not exist. Others may be
// somebody else's.
func checkPlaceholders(field string, input schemas.Payload) error {
	if !json.Valid(input) {
		return nil
	}
	for rest := string(input); ; {
		_, name, after, ok := placeholder(rest)
		if !ok {
			return nil
		}
		first, _, _ := strings.Cut(name, ".")
		if _, known := (&values{}).of(name); !known && (first == "slot" || first == "last") {
			return schemas.Errorf(schemas.CodeInvalid, "%s: there is no ${%s}", field, name).
				InField(field).
				WithHint(
					"use ${slot}, ${last.slot} or ${last.result}; other texts in ${…} stay as they are")
		}
		rest = after
	}
}
