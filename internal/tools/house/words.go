package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// rule is one word that is to go from some packages. See house-words.txt for the forms of a word.
type rule struct {
	packages []string
	word     string
}

// readWords reads a file of words: lines of packages in square brackets, each followed by lines of
// words.
func readWords(name string) (rules []rule, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var packages []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if inner, ok := strings.CutPrefix(line, "["); ok {
			packages = strings.Fields(strings.TrimSuffix(inner, "]"))
			continue
		}
		for _, word := range strings.Fields(line) {
			rules = append(rules, rule{packages: packages, word: word})
		}
	}
	return rules, nil
}

// covers tells whether the rule is about a package. A name that ends in /... stands for all
// packages below it.
func (r rule) covers(pkg string) bool {
	return slices.ContainsFunc(r.packages, func(p string) bool {
		tree, ok := strings.CutSuffix(p, "...")
		return p == pkg || ok && strings.HasPrefix(pkg+"/", tree)
	})
}

// name is a declared name of production code.
type name struct {
	pkg, text string
	member    bool // declared at package level, a method, or a field
}

// findWords returns the pairs package:name that the rules say are to go, sorted and each once.
func findWords(rules []rule, root string, files []source) (left []string, err error) {
	names := map[name]int{}
	for _, f := range files {
		if !f.test {
			declared(f, names)
		}
	}
	for _, r := range rules {
		switch {
		case strings.HasSuffix(r.word, "/"):
			if _, err := os.Stat(filepath.Join(root, r.word)); err == nil {
				left = append(left, "folders:"+r.word)
			} else if !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
		case strings.HasSuffix(r.word, ".go"):
			for _, f := range files {
				if r.covers(f.pkg) && path.Base(f.name) == r.word {
					left = append(left, f.pkg+":"+r.word)
				}
			}
		default:
			for n, times := range names {
				if r.covers(n.pkg) && matches(r.word, n, times) {
					left = append(left, n.pkg+":"+n.text)
				}
			}
		}
	}
	slices.Sort(left)
	return slices.Compact(left), nil
}

func matches(word string, n name, times int) bool {
	if whole, ok := strings.CutPrefix(word, "2="); ok {
		return n.member && n.text == whole && times > 1
	}
	if whole, ok := strings.CutPrefix(word, "="); ok {
		return n.member && n.text == whole
	}
	return slices.Contains(parts(n.text), word)
}

// parts splits a name at its capitals: newSpellEnd becomes new, spell, end.
func parts(text string) (words []string) {
	from := 0
	for i, c := range text {
		if i > 0 && unicode.IsUpper(c) {
			words = append(words, strings.ToLower(text[from:i]))
			from = i
		}
	}
	return append(words, strings.ToLower(text[from:]))
}

// declared counts the names that a file declares.
func declared(f source, names map[name]int) {
	add := func(member bool, idents ...*ast.Ident) {
		for _, id := range idents {
			names[name{f.pkg, id.Name, member}]++
		}
	}
	addFields := func(member bool, list *ast.FieldList) {
		if list == nil {
			return
		}
		for _, field := range list.List {
			add(member, field.Names...)
		}
	}
	addSpecs := func(member bool, gen *ast.GenDecl) {
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(member, spec.Name)
			case *ast.ValueSpec:
				add(member, spec.Names...)
			}
		}
	}
	for _, decl := range f.file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(true, decl.Name)
			addFields(false, decl.Recv)
		case *ast.GenDecl:
			addSpecs(true, decl)
		}
	}
	ast.Inspect(f.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			addFields(true, n.Fields)
		case *ast.InterfaceType:
			addFields(true, n.Methods)
		case *ast.FuncType:
			addFields(false, n.Params)
			addFields(false, n.Results)
		case *ast.DeclStmt:
			addSpecs(false, n.Decl.(*ast.GenDecl))
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				addExpressions(add, n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				addExpressions(add, n.Key, n.Value)
			}
		}
		return true
	})
}

func addExpressions(add func(bool, ...*ast.Ident), list ...ast.Expr) {
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			add(false, id)
		}
	}
}

func printWords(left []string) {
	table("words of house-words.txt that are left", "package\tnames", func(w io.Writer) {
		for len(left) > 0 {
			pkg, _, _ := strings.Cut(left[0], ":")
			n := 0
			var names []string
			for n < len(left) && strings.HasPrefix(left[n]+":", pkg+":") {
				_, text, _ := strings.Cut(left[n], ":")
				names = append(names, text)
				n++
			}
			fmt.Fprintf(w, "%s\t%d: %s\n", pkg, n, strings.Join(names, " "))
			left = left[n:]
		}
	})
}
