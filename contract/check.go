package contract

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// checkType returns why JSON cannot hold every T, or nothing. The text names the field and the way
// out.
func checkType[T any](what string) string {
	t := reflect.TypeFor[T]()
	at, problem := walk{}.check(t, "")
	if problem == "" {
		return ""
	}
	if at != "" {
		at = ", field " + at
	}
	return fmt.Sprintf("%s %v%s: %s", what, t, at, problem)
}

// walk holds the types that were looked at: types may have cycles.
type walk map[reflect.Type]bool

// check returns the path of Go fields to what JSON cannot hold, and why.
func (w walk) check(t reflect.Type, path string) (at, problem string) {
	if w[t] {
		return "", ""
	}
	w[t] = true
	if problem, ok := ownForm(t); ok {
		return path, problem
	}
	switch t.Kind() {
	case reflect.Chan:
		return path, fmt.Sprintf("JSON cannot hold a channel (%v): leave the field out with the "+
			"tag `json:\"-\"`, and send what comes out of it as a signal", t)
	case reflect.Func:
		return path, fmt.Sprintf("JSON cannot hold a function (%v): leave the field out with the "+
			"tag `json:\"-\"`, and name by a text what is to be done", t)
	case reflect.Complex64, reflect.Complex128:
		return path, "JSON has no complex numbers: use two floats"
	case reflect.UnsafePointer:
		return path, "a pointer means nothing in another process: send what it points to"
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return path, fmt.Sprintf("nobody can tell which type is to be made of JSON for the "+
				"interface %v: use a type without methods of an interface, such as a struct, or a "+
				"text for an error", t)
		}
	case reflect.Pointer:
		return w.check(t.Elem(), path)
	case reflect.Slice, reflect.Array:
		return w.check(t.Elem(), path+"[]")
	case reflect.Map:
		if !goodKey(t.Key()) {
			return path, fmt.Sprintf("the keys of %v are no texts: use string, a kind of integer, "+
				"or a type with MarshalText and UnmarshalText", t)
		}
		return w.check(t.Elem(), path+"[]")
	case reflect.Struct:
		return w.checkStruct(t, path)
	}
	return "", ""
}

func (w walk) checkStruct(t reflect.Type, path string) (at, problem string) {
	fields, names := fieldsOf(t), map[string]string{}
	if len(fields) == 0 && t.NumField() > 0 {
		return path, fmt.Sprintf("%v has no exported field, so JSON would lose all of it: export "+
			"what is to be sent, or write MarshalJSON and UnmarshalJSON", t)
	}
	for _, f := range fields {
		field := t.Field(f.index)
		here := join(path, field.Name)
		if other := names[f.name]; other != "" && f.name != "" {
			return here, fmt.Sprintf("it has the JSON name %q of field %s, so JSON would lose it: "+
				"give it another one", f.name, other)
		}
		names[f.name] = field.Name
		if field.Anonymous && !field.IsExported() && field.Type.Kind() == reflect.Pointer {
			return here, fmt.Sprintf("JSON cannot make the embedded %v, whose name is not "+
				"exported: embed the struct itself", field.Type)
		}
		if at, problem := w.check(field.Type, here); problem != "" {
			return at, problem
		}
	}
	return "", ""
}

// ownForm tells whether a type makes its JSON itself, and what is wrong with how it does.
func ownForm(t reflect.Type) (problem string, ok bool) {
	if t.Kind() == reflect.Interface {
		return "", false
	}
	for _, form := range []struct {
		write, read reflect.Type
		what        string
	}{{jsonMarshaler, jsonUnmarshaler, "JSON"}, {textMarshaler, textUnmarshaler, "Text"}} {
		if !has(t, form.write) {
			continue
		}
		if !has(t, form.read) {
			return fmt.Sprintf("%v has Marshal%s and no Unmarshal%s, so nobody can read what it "+
				"writes: write the other one", t, form.what, form.what), true
		}
		return "", true
	}
	return "", false
}

// selfMade tells whether a type reads or writes its JSON itself.
func selfMade(t reflect.Type) bool {
	return has(t, jsonMarshaler) || has(t, jsonUnmarshaler) ||
		has(t, textMarshaler) || has(t, textUnmarshaler)
}

// has tells whether a type or its pointer has the methods.
func has(t, methods reflect.Type) bool {
	return t.Implements(methods) || t.Kind() != reflect.Interface &&
		reflect.PointerTo(t).Implements(methods)
}

func goodKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Uintptr:
		return true
	}
	return has(t, textMarshaler) && has(t, textUnmarshaler)
}

// field is a field that JSON sees. The name is empty for an embedded struct whose fields JSON takes
// for those of the struct around it.
type field struct {
	index int
	name  string
}

func fieldsOf(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if f.Anonymous && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		embedded := f.Anonymous && inner.Kind() == reflect.Struct
		switch {
		case tag == "-" || !f.IsExported() && !embedded:
			continue
		case name == "" && !embedded:
			name = f.Name
		case name == "" && selfMade(f.Type):
			name = f.Name
		}
		all = append(all, field{i, name})
	}
	return all
}
