package docs_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

// jsonType says what a Go type is in JSON.
func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[schemas.Payload]():
		return "payload"
	case t == reflect.TypeFor[schemas.Duration]():
		return "duration"
	case t == reflect.TypeFor[schemas.Timestamp]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return jsonType(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "bytes (base64)"
	case t.Kind() == reflect.Slice:
		return "array of " + jsonType(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + jsonType(t.Elem())
	case t == reflect.TypeFor[schemas.Event](), t == reflect.TypeFor[schemas.EventType]():
		return "[" + t.Name() + "](#events)"
	case t == reflect.TypeFor[schemas.Decision](), t == reflect.TypeFor[schemas.DecisionType]():
		return "[" + t.Name() + "](#decisions)"
	case t.PkgPath() != "":
		return "[" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}

// fields is the table of a struct.
func fields(t *testing.T, typ reflect.Type) string {
	all := jsonschema.Fields(source(t, "schemas"), typ)
	if len(all) == 0 {
		return "It has no fields.\n"
	}
	var body [][]string
	for _, f := range all {
		need := "always"
		if f.Optional {
			need = ""
		}
		body = append(body, []string{"`" + f.Name + "`", jsonType(f.Go), need, text(f.Doc)})
	}
	return table([]string{"field", "JSON", "written", "meaning"}, body)
}

func structure(t *testing.T, typ reflect.Type) string {
	return fmt.Sprintf("### %s\n\n%s\n\n%s\n", typ.Name(), text(jsonschema.Doc(source(t, "schemas"), typ)), fields(t, typ))
}

// family describes the messages that stand in files of package schemas, then what they are made of, then their lists of values.
func family(t *testing.T, files []string) string {
	p := source(t, "schemas")
	var b strings.Builder
	for _, file := range files {
		used := familyTypes(t, file)
		for _, typ := range used.messages {
			b.WriteString(structure(t, typ))
		}
		for _, typ := range used.parts {
			b.WriteString(structure(t, typ))
		}
		for _, name := range used.enumerations {
			var body [][]string
			for _, v := range jsonschema.Values(p, name) {
				body = append(body, []string{"`" + v.Name + "`", text(v.Doc)})
			}
			fmt.Fprintf(&b, "### %s\n\n%s\n\n%s\n", name, text(p.Type(name).Doc), table([]string{"value", "meaning"}, body))
		}
	}
	return b.String()
}

// familyOf are the types of one file, in the order of the source, where a request stands before its answer.
type familyOf struct {
	messages, parts []reflect.Type
	enumerations    []string
}

func familyTypes(t *testing.T, file string) familyOf {
	p := source(t, "schemas")
	var f familyOf
	byName := func(all []reflect.Type, name string) []reflect.Type {
		if i := slices.IndexFunc(all, func(typ reflect.Type) bool { return typ.Name() == name }); i >= 0 {
			return all[i : i+1]
		}
		return nil
	}
	for _, typ := range p.Types {
		if typ.File != file {
			continue
		}
		f.messages = append(f.messages, byName(jsonschema.Messages(), typ.Name)...)
		f.parts = append(f.parts, byName(parts(t), typ.Name)...)
		if len(jsonschema.Values(p, typ.Name)) > 0 && !slices.Contains(elsewhere, typ.Name) {
			f.enumerations = append(f.enumerations, typ.Name)
		}
	}
	if len(f.messages)+len(f.parts)+len(f.enumerations) == 0 {
		t.Errorf("schemas/%s has no messages: take it out of the templates", file)
	}
	return f
}

// No type that is on the wire is left out: each has a heading on one page of the reference.
func TestFamiliesAreComplete(t *testing.T) {
	p := source(t, "schemas")
	headings := strings.Split(reference(t), "\n")
	var want []string
	for _, typ := range slices.Concat(jsonschema.Messages(), parts(t)) {
		want = append(want, typ.Name())
	}
	for _, typ := range p.Types {
		if len(jsonschema.Values(p, typ.Name)) > 0 && !slices.Contains(elsewhere[:2], typ.Name) {
			want = append(want, typ.Name)
		}
	}
	for _, name := range want {
		n := 0
		for _, line := range headings {
			if line == "### "+name || line == "## "+name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s stands on %d pages, want one: add schemas/%s to a template", name, n, p.Type(name).File)
		}
	}
}

// parts are the structs that messages are made of, and that are neither messages nor attributes.
func parts(t *testing.T) []reflect.Type {
	known := map[reflect.Type]bool{reflect.TypeFor[schemas.Event](): true, reflect.TypeFor[schemas.Decision](): true}
	for _, m := range jsonschema.Messages() {
		known[m] = true
	}
	var found []reflect.Type
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct {
			return
		}
		if !known[typ] {
			known[typ] = true
			found = append(found, typ)
		} else if !slices.Contains(jsonschema.Messages(), typ) {
			return
		}
		for f := range typ.Fields() {
			visit(f.Type)
		}
	}
	for _, typ := range attributes(t) {
		known[typ] = true
	}
	for _, m := range jsonschema.Messages() {
		visit(m)
	}
	for _, typ := range attributes(t) {
		for f := range typ.Fields() {
			visit(f.Type)
		}
	}
	slices.SortFunc(found, func(a, b reflect.Type) int { return strings.Compare(a.Name(), b.Name()) })
	return found
}

// elsewhere are the types of constants that have tables of their own.
var elsewhere = []string{"EventType", "DecisionType", "Cause", "Code"}

// listed are the values of a type whose meanings stand in errors.md.
func listed(t *testing.T, name string) string {
	p := source(t, "schemas")
	var values []string
	for _, c := range p.ConstantsOf(name) {
		values = append(values, fmt.Sprintf("[`%s`](errors.md#%s)", c.Value, strings.ToLower(c.Value)))
	}
	return fmt.Sprintf("%s [errors.md](errors.md) says what each means and what to do.\n\n%s.", text(p.Type(name).Doc), strings.Join(values, ", "))
}

func codes(t *testing.T) string { return listed(t, "Code") }

func causes(t *testing.T) string { return listed(t, "Cause") }
