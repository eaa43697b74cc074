// Package typecheck type-checks Go code in tests: of what must not compile.
//
// It is for test files only.
package typecheck

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Checker knows the packages that the code may import.
type Checker struct {
	fset     *token.FileSet
	importer types.Importer
}

// New lists the packages that the code is to import, and what they import. The go command compiles
// them where it has not yet.
func New(t testing.TB, packages ...string) *Checker {
	t.Helper()
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"},
		packages...)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, complaints.String())
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[pkg] = file
	}
	fset := token.NewFileSet()
	return &Checker{fset, importer.ForCompiler(fset, "gc", func(pkg string) (io.ReadCloser, error) {
		if files[pkg] == "" {
			return nil, fmt.Errorf("the test has not named package %s", pkg)
		}
		return os.Open(files[pkg])
	})}
}

// Errors returns what the compiler would say about a file: "line: text", in the order of lines. It
// is empty if the file compiles.
func (c *Checker) Errors(t testing.TB, source string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(c.fset, "code.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: c.importer, Error: func(err error) {
		if e, ok := err.(types.Error); ok && !e.Soft {
			all = append(all, fmt.Sprintf("%d: %s", c.fset.Position(e.Pos).Line, e.Msg))
		}
	}}
	_, _ = conf.Check("code", c.fset, []*ast.File{file}, nil)
	return all
}
