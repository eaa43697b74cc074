package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that the page on reliability names are there. A name that ends in … stands for all that begin like it.
func TestReliabilityNamesTests(t *testing.T) {
	page, err := os.ReadFile("learn/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				there = append(there, fn.Name.Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all := "\n" + strings.Join(there, "\n") + "\n"
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)(…?)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 40 {
		t.Fatalf("the page names %d tests", len(named))
	}
	for _, n := range named {
		end := "\n"
		if n[2] != "" {
			end = ""
		}
		if !strings.Contains(all, "\n"+n[1]+end) {
			t.Errorf("there is no test %s%s", n[1], n[2])
		}
	}
}
