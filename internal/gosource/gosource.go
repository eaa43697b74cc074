// Package gosource reads what generated documents quote from Go source: doc comments of types,
// fields, methods and constants.
//
// It parses and does not type-check, so that a test can use it on a package in milliseconds. What a
// program does is told by reflection; this package only tells what its authors wrote about it. It
// knows no package of ours. Any generator or test may call it.
package gosource

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Package is what the files of one folder say, without those of tests.
type Package struct {
	// Types are the exported types in the order of files and lines.
	Types []*Type
	// Constants are the constants of a text, exported or not, in the same order.
	Constants []*Constant
	// Methods are the exported methods of exported types, in the same order.
	Methods []*Method
	files   map[string]*ast.File
}

// Type is a declared type.
type Type struct {
	Name, File, Doc string
	// Fields are the exported fields of a struct, without embedded ones.
	Fields []*Field
}

// Field is a field of a struct.
type Field struct{ Name, Doc string }

// Constant is a constant whose value is a text literal. Type is "" if the declaration names none.
type Constant struct{ Name, Type, Value, File, Doc string }

// Method is a method: Params are the names of its parameters.
type Method struct {
	Receiver, Name, Doc string
	Params              []string
}

// Read parses folders; several are read as one package.
func Read(dirs ...string) (*Package, error) {
	p := &Package{files: map[string]*ast.File{}}
	for _, dir := range dirs {
		before := len(p.files)
		if err := p.read(dir); err != nil {
			return nil, fmt.Errorf("gosource: %w", err)
		}
		if len(p.files) == before {
			return nil, fmt.Errorf("gosource: %s holds no Go source: name the folder of a package",
				dir)
		}
	}
	return p, nil
}

func (p *Package) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		path := filepath.Join(dir, name)
		mode := parser.ParseComments | parser.SkipObjectResolution
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode)
		if err != nil {
			return err
		}
		p.files[path] = file
		for _, d := range file.Decls {
			p.add(name, d)
		}
	}
	return nil
}

// Type returns a type by its name, or nil.
func (p *Package) Type(name string) *Type {
	if i := slices.IndexFunc(p.Types, func(t *Type) bool { return t.Name == name }); i >= 0 {
		return p.Types[i]
	}
	return nil
}

// ConstantsOf returns the constants of a type.
func (p *Package) ConstantsOf(typ string) []*Constant {
	var all []*Constant
	for _, c := range p.Constants {
		if c.Type == typ {
			all = append(all, c)
		}
	}
	return all
}

// Each calls fn for every node of every file.
func (p *Package) Each(fn func(ast.Node)) {
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if n != nil {
				fn(n)
			}
			return true
		})
	}
}

// FieldDoc returns what is written at a field; "" if nothing is.
func (t *Type) FieldDoc(name string) string {
	if t == nil {
		return ""
	}
	if i := slices.IndexFunc(t.Fields, func(f *Field) bool { return f.Name == name }); i >= 0 {
		return t.Fields[i].Doc
	}
	return ""
}

func (p *Package) add(file string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		p.addMethod(d)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				p.addType(file, d, s)
			case *ast.ValueSpec:
				p.addConstant(file, d, s)
			}
		}
	}
}

func (p *Package) addType(file string, d *ast.GenDecl, s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	t := &Type{Name: s.Name.Name, File: file, Doc: doc(d, s.Doc, nil)}
	if st, ok := s.Type.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					t.Fields = append(t.Fields,
						&Field{Name: n.Name, Doc: doc(nil, f.Doc, f.Comment)})
				}
			}
		}
	}
	p.Types = append(p.Types, t)
}

func (p *Package) addConstant(file string, d *ast.GenDecl, s *ast.ValueSpec) {
	if d.Tok != token.CONST || len(s.Names) != 1 || len(s.Values) != 1 {
		return
	}
	lit, ok := s.Values[0].(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return
	}
	value, err := strconv.Unquote(lit.Value)
	if err != nil {
		return // the parser has seen to that
	}
	c := &Constant{Name: s.Names[0].Name, Value: value, File: file, Doc: doc(d, s.Doc, s.Comment)}
	if id, ok := s.Type.(*ast.Ident); ok {
		c.Type = id.Name
	}
	p.Constants = append(p.Constants, c)
}

func (p *Package) addMethod(d *ast.FuncDecl) {
	if d.Recv == nil || !d.Name.IsExported() {
		return
	}
	recv := d.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	id, ok := recv.(*ast.Ident)
	if !ok || !id.IsExported() {
		return
	}
	m := &Method{Receiver: id.Name, Name: d.Name.Name, Doc: Flow(d.Doc.Text())}
	for _, f := range d.Type.Params.List {
		for _, n := range f.Names {
			m.Params = append(m.Params, n.Name)
		}
	}
	p.Methods = append(p.Methods, m)
}

// doc is the comment of a declaration: above the name, after it, or above the keyword if that
// declares nothing else.
func doc(d *ast.GenDecl, above, later *ast.CommentGroup) string {
	switch {
	case above != nil:
		return Flow(above.Text())
	case later != nil:
		return Flow(later.Text())
	case d != nil && !d.Lparen.IsValid():
		return Flow(d.Doc.Text())
	}
	return ""
}
