package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// misplaced is an error about one value of a body.
type misplaced struct {
	at  string
	err error
}

func (e *misplaced) Error() string { return e.at + ": " + e.err.Error() }
func (e *misplaced) Unwrap() error { return e.err }

// Place tells which field of the JSON an error of [Codec.Decode] is about, as a path such as
// activityDefaults.list; empty if it is about the whole, or the body is no JSON.
func Place(err error) string {
	if e, ok := errors.AsType[*misplaced](err); ok {
		return e.at
	}
	return ""
}

// Located puts the place before an error of encoding/json about v. The package names fields in its
// own errors alone, not in those of types that decode themselves, as durations, times and payloads
// do.
func Located(b []byte, v any, err error) error {
	at := ""
	if wrong, ok := err.(*json.UnmarshalTypeError); ok {
		at, err = wrong.Field, inWords(wrong)
	} else {
		at = faulty(b, reflect.TypeOf(v))
	}
	if at == "" {
		return err
	}
	return &misplaced{at: at, err: err}
}

// inWords says what is wanted where a value is of the wrong type, to whoever wrote the JSON, in any
// language.
func inWords(err *json.UnmarshalTypeError) error {
	got, number := strings.CutPrefix(err.Value, "number ")
	if word, ok := jsonWords[got]; ok && !number {
		got = word
	}
	return fmt.Errorf("want %s, got %s", wanted(err.Type), got)
}

// jsonWords are the words for what encoding/json calls what it found.
var jsonWords = map[string]string{
	"string": "a text", "number": "a number", "bool": "true or false", "array": "an array",
	"object": "an object",
}

// wanted is what stands for a type in JSON.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return jsonWords["string"]
	case reflect.Bool:
		return jsonWords["bool"]
	case reflect.Float64:
		return jsonWords["number"]
	case reflect.Int, reflect.Int64:
		return "a whole number of 64 bits"
	case reflect.Uint64:
		return "a whole number of 64 bits that is not negative"
	case reflect.Slice:
		return jsonWords["array"]
	}
	return jsonWords["object"]
}

// faulty finds the first value of a type that decodes itself and does not take what stands there,
// as a path from t; empty if there is none.
func faulty(b json.RawMessage, t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Struct:
		var parts map[string]json.RawMessage
		if json.Unmarshal(b, &parts) != nil {
			return ""
		}
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			part, there := parts[name]
			if !there {
				continue
			}
			if ownJSON(f.Type) {
				if json.Unmarshal(part, reflect.New(f.Type).Interface()) != nil {
					return name
				}
			} else if at := faulty(part, f.Type); at != "" {
				return name + join(at)
			}
		}
	case reflect.Slice:
		var parts []json.RawMessage
		if t.Elem().Kind() == reflect.Uint8 || json.Unmarshal(b, &parts) != nil {
			return ""
		}
		for i, part := range parts {
			if ownJSON(t.Elem()) {
				if json.Unmarshal(part, reflect.New(t.Elem()).Interface()) != nil {
					return fmt.Sprintf("[%d]", i)
				}
			} else if at := faulty(part, t.Elem()); at != "" {
				return fmt.Sprintf("[%d]%s", i, join(at))
			}
		}
	}
	return ""
}

// join is a path after what it is in.
func join(path string) string {
	if path[0] == '[' {
		return path
	}
	return "." + path
}

// ownJSON tells whether a type decodes itself.
func ownJSON(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}
