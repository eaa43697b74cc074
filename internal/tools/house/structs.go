package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"slices"
	"strings"
)

// structure is a declared struct of production code. An embedded field counts as one.
type structure struct {
	pkg, name       string
	fields, methods int
	files           map[string]bool // that have its methods
	data            bool            // stored or sent: of schemas, or with tags of an encoding
}

// findStructs returns the structs of production code, those with the most fields first.
func findStructs(files []source) []*structure {
	found := map[[2]string]*structure{}
	for _, f := range files {
		if f.test || !(&pack{name: f.pkg}).product() {
			continue
		}
		for _, decl := range f.file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				spec, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if t, ok := spec.Type.(*ast.StructType); ok {
					fields, tagged := countFields(t)
					data := tagged || f.pkg == "schemas" || strings.HasPrefix(f.pkg, "schemas/")
					found[[2]string{f.pkg, spec.Name.Name}] = &structure{
						pkg: f.pkg, name: spec.Name.Name, fields: fields, files: map[string]bool{},
						data: data,
					}
				}
			}
		}
	}
	for _, f := range files {
		for _, decl := range f.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil && !f.test {
				if s := found[[2]string{f.pkg, receiver(fn)}]; s != nil {
					s.methods++
					s.files[f.name] = true
				}
			}
		}
	}
	var structs []*structure
	for _, s := range found {
		structs = append(structs, s)
	}
	slices.SortFunc(structs, func(a, b *structure) int {
		return cmp.Or(b.fields-a.fields, strings.Compare(a.pkg, b.pkg),
			strings.Compare(a.name, b.name))
	})
	return structs
}

// countFields counts the fields of a struct and tells whether one has a tag of an encoding.
func countFields(t *ast.StructType) (fields int, tagged bool) {
	for _, f := range t.Fields.List {
		fields += max(len(f.Names), 1)
		if f.Tag != nil &&
			(strings.Contains(f.Tag.Value, "json:") || strings.Contains(f.Tag.Value, "msgpack:")) {
			tagged = true
		}
	}
	return fields, tagged
}

// receiver is the name of the type that a method belongs to.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func fieldsOf(structs []*structure, name string) string {
	for _, s := range structs {
		if s.name == name {
			return fmt.Sprint(s.fields)
		}
	}
	return "none of that name"
}

func largestStruct(structs []*structure) string {
	most, above := &structure{}, 0
	for _, s := range structs {
		if s.data {
			continue
		}
		if s.fields > most.fields {
			most = s
		}
		if s.fields > 25 {
			above++
		}
	}
	return fmt.Sprintf("%d (%s.%s), %d above", most.fields, most.pkg, most.name, above)
}

func printStructs(structs []*structure) {
	table("structs with more than 15 fields", "struct\tfields\tmethods\tin files\tstored or sent",
		func(w io.Writer) {
			for _, s := range structs {
				if s.fields <= 15 {
					break
				}
				data := ""
				if s.data {
					data = "yes"
				}
				fmt.Fprintf(w, "%s.%s\t%d\t%d\t%d\t%s\n",
					s.pkg, s.name, s.fields, s.methods, len(s.files), data)
			}
		})
	byMethods := slices.SortedFunc(slices.Values(structs), func(a, b *structure) int {
		return cmp.Or(b.methods-a.methods, strings.Compare(a.pkg, b.pkg),
			strings.Compare(a.name, b.name))
	})
	table("structs with the most methods", "struct\tfields\tmethods\tin files", func(w io.Writer) {
		for _, s := range byMethods[:min(10, len(byMethods))] {
			fmt.Fprintf(w, "%s.%s\t%d\t%d\t%d\n", s.pkg, s.name, s.fields, s.methods, len(s.files))
		}
	})
}
