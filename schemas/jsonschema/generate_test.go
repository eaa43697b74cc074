package jsonschema_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/gosource"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/jsonschema"
)

var update = flag.Bool("update", false, "rewrite the schemas")

func source(t *testing.T) *gosource.Package {
	t.Helper()
	p, err := gosource.Read("..", "../ops")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names() []string {
	var all []string
	for _, m := range jsonschema.Messages() {
		all = append(all, m.Name())
	}
	slices.Sort(all)
	return all
}

// The files are what the types say now. With -update they are written.
func TestFilesAreGenerated(t *testing.T) {
	p := source(t)
	for _, m := range jsonschema.Messages() {
		got, err := jsonschema.Generate(p, m)
		if err != nil {
			t.Fatal(err)
		}
		file := m.Name() + ".json"
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := jsonschema.Schema(m.Name())
		if err != nil {
			t.Fatalf("%v; write it with: go test ./schemas/jsonschema -update", err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s differs from the type; write it with: go test ./schemas/jsonschema -update\n%s", file, cmp.Diff(string(want), string(got)))
		}
	}
	if *update {
		return // the files of this program are the old ones
	}
	if diff := cmp.Diff(names(), jsonschema.Names()); diff != "" {
		t.Fatalf("files without a message, or the other way round (-messages +files):\n%s", diff)
	}
	if _, err := jsonschema.Schema("Nothing"); err == nil {
		t.Fatal("got nil, want an error for a message that does not exist")
	}
}

// Every type of package schemas that stands in JSON is a message or a part of one.
func TestNoTypeIsLeftOut(t *testing.T) {
	p := source(t)
	seen := map[string]bool{"Unknown": true, "UnknownDecision": true} // what Event and Decision hold of later versions
	for _, m := range jsonschema.Messages() {
		seen[m.Name()] = true
		schema, err := jsonschema.Generate(p, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range p.Types {
			if bytes.Contains(schema, []byte(`"#/$defs/`+typ.Name+`"`)) {
				seen[typ.Name] = true
			}
		}
	}
	for _, typ := range p.Types {
		if len(typ.Fields) > 0 && !seen[typ.Name] {
			t.Errorf("%s of %s is in no message: add it, or the message that it belongs to, to Messages", typ.Name, typ.File)
		}
	}
}

// The messages whose round trip package schemas tests are those that have a schema.
func TestMessagesAreThoseOfTheRoundTrip(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../fill_test.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var tested []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != "messages" {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if lit, ok := n.(*ast.CompositeLit); ok {
				if sel, ok := lit.Type.(*ast.SelectorExpr); ok {
					tested = append(tested, sel.Sel.Name)
				}
			}
			return true
		})
	}
	if len(tested) == 0 {
		t.Fatal("fill_test.go has no function messages any more")
	}
	for _, name := range tested {
		if !slices.Contains(names(), name) {
			t.Errorf("%s is a message that has no schema: add it to Messages", name)
		}
	}
}

// Every field of every struct has a meaning, and every line of the glossary is needed.
func TestGlossary(t *testing.T) {
	p := source(t)
	fields, values := jsonschema.Glossary()
	unused := maps.Clone(fields)
	maps.Copy(unused, values)
	for _, typ := range structs(t) {
		for f := range typ.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous, p.Type(typ.Name()).FieldDoc(f.Name) != "":
			case fields[typ.Name()+"."+name] != "":
				delete(unused, typ.Name()+"."+name)
			case fields[name] != "":
				delete(unused, name)
			default:
				t.Errorf("%s.%s has no meaning: comment the field, or add it to the glossary", typ.Name(), name)
			}
		}
	}
	for _, c := range p.Constants {
		key := c.Type + "." + c.Value
		switch {
		// Events and decisions are explained at their structs, causes and codes in a paper.
		case p.Type(c.Type) == nil, slices.Contains([]string{"EventType", "DecisionType", "Cause", "Code"}, c.Type), c.Doc != "":
		case values[key] == "":
			t.Errorf("%s has no meaning: comment the constant, or add it to values", key)
		default:
			delete(unused, key)
		}
	}
	for name := range unused {
		t.Errorf("the glossary explains %q, and nothing needs it", name)
	}
}

// structs are all types that messages, events and decisions are made of.
func structs(t *testing.T) []reflect.Type {
	seen := map[reflect.Type]bool{}
	var all []reflect.Type
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] {
			return
		}
		seen[typ] = true
		if typ != reflect.TypeFor[schemas.Event]() && typ != reflect.TypeFor[schemas.Decision]() {
			all = append(all, typ)
		}
		for f := range typ.Fields() {
			visit(f.Type)
		}
	}
	for _, m := range jsonschema.Messages() {
		visit(m)
	}
	for _, typ := range schemas.EventTypes() {
		var e schemas.Event
		if err := e.UnmarshalJSON([]byte(`{"type":"` + string(typ) + `"}`)); err != nil {
			t.Fatal(err)
		}
		visit(reflect.TypeOf(e.Attributes))
	}
	for _, typ := range schemas.DecisionTypes() {
		var d schemas.Decision
		if err := d.UnmarshalJSON([]byte(`{"type":"` + string(typ) + `"}`)); err != nil {
			t.Fatal(err)
		}
		visit(reflect.TypeOf(d.Attributes))
	}
	return all
}

// A type that the generator does not know is an error, not a hole.
func TestGenerateRefuses(t *testing.T) {
	type odd struct {
		C chan int `json:"c"`
	}
	if _, err := jsonschema.Generate(source(t), reflect.TypeFor[odd]()); err == nil {
		t.Fatal("got nil, want an error that names the field")
	}
}
