package schemas

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// located puts the place before an error of encoding/json about v. The package names fields in its own errors alone, not in those of types that
// decode themselves, as durations, times and payloads do.
func located(b []byte, v any, err error) error {
	if at := faulty(b, reflect.TypeOf(v)); at != "" {
		return fmt.Errorf("%s: %w", at, err)
	}
	return err
}

// faulty finds the first value of a type that decodes itself and does not take what stands there, as a path from t; empty if there is none.
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

// join is a path behind what it is in.
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
