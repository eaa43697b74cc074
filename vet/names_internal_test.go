package vet

import (
	"go/types"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The standard library has what is said of it.
func TestNames(t *testing.T) {
	var paths []string
	for path := range names {
		if first, _, _ := strings.Cut(path, "/"); standard[first] {
			paths = append(paths, path)
		}
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports, Context: t.Context(),
	}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) != len(paths) {
		t.Fatalf("%d packages, want %d", len(pkgs), len(paths))
	}
	for _, p := range pkgs {
		for name := range names[p.PkgPath] {
			typ, method, isMethod := strings.Cut(name, ".")
			if name == "*" {
				continue
			}
			obj := p.Types.Scope().Lookup(typ)
			if obj != nil && isMethod && method != "*" {
				obj, _, _ = types.LookupFieldOrMethod(obj.Type(), true, p.Types, method)
			}
			if obj == nil {
				t.Errorf("package %s has no %s", p.PkgPath, name)
			}
		}
	}
}
