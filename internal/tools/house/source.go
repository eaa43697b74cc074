package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// source is one Go file.
type source struct {
	name string // slash-separated, from the root
	pkg  string // its folder, or "." for the root
	test bool
	text []byte
	code []byte // text without comments, blank lines and blanks at the ends of lines
	file *ast.File
	fset *token.FileSet
}

// readSources reads every Go file below root but for testdata, hidden folders, and modules of their
// own other than bench.
func readSources(root string) ([]source, error) {
	var files []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			return enter(name, rel)
		}
		if path.Ext(rel) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, rel, text,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, source{
			name: rel, pkg: path.Dir(rel), test: strings.HasSuffix(rel, "_test.go"),
			text: text, code: codeOf(text, fset, file), file: file, fset: fset,
		})
		return nil
	})
	return files, err
}

// enter returns fs.SkipDir for folders that are not measured.
func enter(name, rel string) error {
	base := path.Base(rel)
	switch {
	case rel == "." || rel == "bench":
		return nil
	case base[0] == '.' || base[0] == '_' || base == "testdata" || base == "node_modules":
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

// codeOf returns a file's text without comments, blank lines and blanks at the ends of lines.
func codeOf(text []byte, fset *token.FileSet, file *ast.File) []byte {
	rest := bytes.Clone(text)
	for _, group := range file.Comments {
		for _, c := range group.List {
			from, to := fset.Position(c.Pos()).Offset, fset.Position(c.End()).Offset
			for i := from; i < to; i++ {
				if rest[i] != '\n' {
					rest[i] = ' '
				}
			}
		}
	}
	var code []byte
	for line := range bytes.Lines(rest) {
		if line = bytes.TrimRight(line, " \t\r\n"); len(line) > 0 {
			code = append(append(code, line...), '\n')
		}
	}
	return code
}
