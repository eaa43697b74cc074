package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/droverhq/drover/schemas"
)

// encode encodes a value of a contract, as package activity does.
func encode[T any](of, what string, v T) (schemas.Payload, error) {
	switch v := any(v).(type) {
	case nil, struct{}:
		return nil, nil
	case schemas.Payload:
		return v, nil
	case []byte:
		return v, nil
	case string:
		return schemas.JSONPayload(v)
	}
	// By its address, so that a MarshalJSON of the pointer is used as well.
	p, err := schemas.JSONPayload(&v)
	if err != nil {
		return nil, wrong[T](of, what, unencodable(reflect.ValueOf(&v).Elem(), 0), err)
	}
	return p, nil
}

// decode decodes what encode has encoded, or what somebody in another language has.
func decode[T any](of, what string, p schemas.Payload) (v T, err error) {
	switch v := any(&v).(type) {
	case *schemas.Payload:
		*v = p
	case *[]byte:
		*v = p
	case *struct{}:
	default:
		if err = p.Decode(v); err != nil {
			field := ""
			if !errors.Is(err, schemas.ErrReference) {
				field = undecodable(reflect.TypeFor[T](), json.RawMessage(p), 0)
			}
			err = wrong[T](of, what, field, err)
		}
	}
	if err != nil {
		var none T // not half of one
		return none, err
	}
	return v, nil
}

func wrong[T any](of, what, field string, err error) error {
	if field != "" {
		field = ", field " + field
	}
	return fmt.Errorf("contract: %s: %s %v%s: %w", of, what, reflect.TypeFor[T](), field, err)
}

// maxDepth bounds how deep the value is looked for that an error is about: values may have cycles.
const maxDepth = 50

// unencodable returns the path to the value within v that has no JSON form; empty for v itself.
func unencodable(v reflect.Value, depth int) string {
	if depth > maxDepth || selfMade(v.Type()) {
		return ""
	}
	try := func(step string, v reflect.Value) (string, bool) {
		if !v.CanInterface() {
			return "", false
		}
		if _, err := json.Marshal(v.Interface()); err == nil {
			return "", false
		}
		return join(step, unencodable(v, depth+1)), true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return unencodable(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for _, f := range fieldsOf(v.Type()) {
			if at, ok := try(f.name, v.Field(f.index)); ok {
				return at
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if at, ok := try(fmt.Sprintf("[%d]", i), v.Index(i)); ok {
				return at
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if at, ok := try(fmt.Sprintf("[%v]", key), v.MapIndex(key)); ok {
				return at
			}
		}
	}
	return ""
}

// undecodable returns the path to the value within the body that is not what the type wants; empty for
// the body itself.
func undecodable(t reflect.Type, body json.RawMessage, depth int) string {
	for t.Kind() == reflect.Pointer && !selfMade(t) {
		t = t.Elem()
	}
	if depth > maxDepth || selfMade(t) || !json.Valid(body) {
		return ""
	}
	try := func(step string, t reflect.Type, body json.RawMessage) (string, bool) {
		if json.Unmarshal(body, reflect.New(t).Interface()) == nil {
			return "", false
		}
		return join(step, undecodable(t, body, depth+1)), true
	}
	switch t.Kind() {
	case reflect.Struct:
		var parts map[string]json.RawMessage
		if json.Unmarshal(body, &parts) != nil {
			return ""
		}
		for _, f := range fieldsOf(t) {
			part, ok := parts[f.name]
			if f.name == "" {
				part, ok = body, true
			}
			if !ok {
				continue
			}
			if at, ok := try(f.name, t.Field(f.index).Type, part); ok {
				return at
			}
		}
	case reflect.Slice, reflect.Array:
		var parts []json.RawMessage
		if json.Unmarshal(body, &parts) != nil {
			return ""
		}
		for i, part := range parts {
			if at, ok := try(fmt.Sprintf("[%d]", i), t.Elem(), part); ok {
				return at
			}
		}
	case reflect.Map:
		var parts map[string]json.RawMessage
		if json.Unmarshal(body, &parts) != nil {
			return ""
		}
		for key, part := range parts {
			if at, ok := try(fmt.Sprintf("[%s]", key), t.Elem(), part); ok {
				return at
			}
		}
	}
	return ""
}

// join puts two parts of a path together.
func join(a, b string) string {
	if a == "" || b == "" || b[0] == '[' {
		return a + b
	}
	return a + "." + b
}
