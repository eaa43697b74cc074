package jsonschema

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"

	"github.com/droverhq/drover/internal/gosource"
)

// Field is a field of a message as it stands in JSON.
type Field struct {
	Name     string
	Go       reflect.Type
	Optional bool   // left out while it is zero
	Doc      string // of the Go source with the names of JSON, or else of the glossary
}

// Fields returns the fields of a struct in their order, those of embedded structs in their place.
func Fields(source *gosource.Package, t reflect.Type) []Field {
	var all []Field
	for f := range t.Fields() {
		if f.Anonymous {
			all = append(all, Fields(source, f.Type)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, Field{
			Name: name, Go: f.Type, Optional: strings.Contains(options, "omitempty"),
			Doc: cmp.Or(inJSON(t, source.Type(t.Name()).FieldDoc(f.Name)),
				glossary[t.Name()+"."+name], glossary[name]),
		})
	}
	return all
}

// Value is a value of an enumeration.
type Value struct{ Name, Doc string }

// Values returns the values of an enumeration in the order of the source.
func Values(source *gosource.Package, typ string) []Value {
	var all []Value
	for _, c := range source.ConstantsOf(typ) {
		// The first word of a comment is the name in Go, which says nothing to others.
		doc := strings.TrimLeft(strings.TrimPrefix(c.Doc, c.Name), ": ")
		all = append(all, Value{c.Value, cmp.Or(doc, values[typ+"."+c.Value])})
	}
	return all
}

// Doc returns what the source says about a type, with the names of JSON.
func Doc(source *gosource.Package, t reflect.Type) string {
	s := source.Type(t.Name())
	if s == nil {
		return ""
	}
	// The first word is the name of the type, which may be that of a field too.
	first, rest, _ := strings.Cut(s.Doc, " ")
	return first + " " + inJSON(t, rest)
}

var word = regexp.MustCompile(`[A-Z]\w*`)

// inJSON writes the names of Go fields in a comment as they are in JSON. A reader of JSON knows no
// others.
func inJSON(t reflect.Type, text string) string {
	if t.Kind() != reflect.Struct {
		return text
	}
	names := map[string]string{}
	for f := range t.Fields() {
		names[f.Name], _, _ = strings.Cut(f.Tag.Get("json"), ",")
	}
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if name := names[w]; name != "" {
			return name
		}
		return w
	})
}
