package drover_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The packages that users import name no type of the engine: those may change with it.
func TestSignaturesNameNoEngineType(t *testing.T) {
	// The role is put together by package server, which shares its claims with the other roles, and counts for its metrics.
	exempt := []string{"timers: Options.Claims: claims.Claims", "timers: Options.Stats: stats.Stats"}
	fset := token.NewFileSet()
	for _, dir := range []string{".", "decider", "activity", "signals", "timers"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(fset, path.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range engineTypes(file) {
				if found = cmpRoot(dir) + ": " + found; !slices.Contains(exempt, found) {
					t.Errorf("%s", found)
				}
			}
		}
	}
}

func TestEngineTypesAreFound(t *testing.T) {
	const head = "package a\nimport (\n\"" + module + "/broker/natsconn\"\n\"" + module + "/schemas\"\n)\n"
	for src, want := range map[string][]string{
		`func F(c *natsconn.Conn) {}`:                                {"F: natsconn.Conn"},
		`func F() (a []natsconn.Msg, err error) { return nil, nil }`: {"F: natsconn.Msg"},
		`type T struct{}; func (t *T) M(f func(natsconn.Msg)) {}`:    {"T.M: natsconn.Msg"},
		`type O struct { Conn *natsconn.Conn; conn *natsconn.Conn }`: {"O.Conn: natsconn.Conn"},
		`type A = natsconn.Conn`:                                     {"A: natsconn.Conn"},
		`type I interface { M() natsconn.Msg }`:                      {"I: natsconn.Msg"},
		`var V *natsconn.Conn`:                                       {"V: natsconn.Conn"},
		`type t struct{}; func (t *t) M(c *natsconn.Conn) {}`:        nil,
		`func f(c *natsconn.Conn) {}; var Err = natsconn.ErrClosed`:  nil,
		`func F(e schemas.Event) { var c *natsconn.Conn; _ = c }`:    nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", head+src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := engineTypes(file); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
	}
}

// engineTypes returns what the exported declarations of a file name of the packages under broker, as "where: type".
func engineTypes(file *ast.File) (found []string) {
	engine := map[string]bool{} // by the name that the file has for the package
	for _, spec := range file.Imports {
		if imp, err := strconv.Unquote(spec.Path.Value); err == nil && within(imp, module+"/broker") {
			name := path.Base(imp)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			engine[name] = true
		}
	}
	look := func(where string, in ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && engine[x.Name] {
					found = append(found, where+": "+x.Name+"."+sel.Sel.Name)
				}
			}
			return true
		})
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if where, exported := nameOf(d); exported {
				look(where, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				lookSpec(spec, look)
			}
		}
	}
	return found
}

// nameOf is the name of a function or method, and whether others can call it.
func nameOf(d *ast.FuncDecl) (name string, exported bool) {
	name, exported = d.Name.Name, d.Name.IsExported()
	if d.Recv == nil {
		return name, exported
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	of, ok := typ.(*ast.Ident)
	return of.Name + "." + name, exported && ok && of.IsExported()
}

func lookSpec(spec ast.Spec, look func(where string, in ast.Node)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() && s.Type != nil {
				look(name.Name, s.Type)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			look(s.Name.Name, s.Type)
			return
		}
		for _, f := range fields.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					look(s.Name.Name+"."+name.Name, f.Type)
				}
			}
			if len(f.Names) == 0 {
				look(s.Name.Name, f.Type)
			}
		}
	}
}
