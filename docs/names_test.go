package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/droverhq/drover/schemas"
)

const glossary = "glossary.md"

// declared are the names that production code declares at the top level, as package.Name, and its
// methods, as package.Type.Method.
var declared = sync.OnceValues(func() (map[string]bool, error) {
	all := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "testdata", "node_modules", "bin"}, d.Name()):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			for _, name := range namesOf(decl) {
				all[f.Name.Name+"."+name] = true
			}
		}
		return nil
	})
	return all, err
})

// namesOf are the names that one declaration gives, of methods as Type.Method.
func namesOf(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		typ := d.Recv.List[0].Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		if generic, ok := typ.(*ast.IndexExpr); ok {
			typ = generic.X
		}
		return []string{fmt.Sprintf("%s.%s", typ, d.Name.Name)}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
		return names
	}
	return nil
}

// goName is a name of Go in code font, as package.Name or package.Type.Method.
var goName = regexp.MustCompile("`([a-z][a-z0-9]*(?:\\.[A-Za-z]\\w*){1,2})`")

// checkGoNames reports the names in a text that no code declares, and returns how many it has found.
func checkGoNames(t *testing.T, text string) int {
	t.Helper()
	there, err := declared()
	if err != nil {
		t.Fatal(err)
	}
	named := goName.FindAllStringSubmatch(text, -1)
	for _, n := range named {
		if !there[n[1]] {
			t.Errorf("the page names %s, and no code declares it", n[1])
		}
	}
	return len(named)
}

// The glossary leaves out no event and no decision, and names nothing that does not exist.
func TestGlossary(t *testing.T) {
	t.Parallel()
	text := section(t, glossary, "## One thing, several names")
	var all []string
	for _, typ := range decisionTypes() {
		all = append(all, string(typ))
	}
	same(t, "decisions", column(text, 1), all)
	all = nil
	for _, typ := range eventTypes() {
		all = append(all, string(typ))
	}
	same(t, "events", column(text, 2), all)
	if checkGoNames(t, text) == 0 {
		t.Error("the glossary names no Go")
	}
	for _, status := range []schemas.Status{
		schemas.StatusOpen, schemas.StatusPaused, schemas.StatusCompleted, schemas.StatusFailed, schemas.StatusCanceled,
		schemas.StatusTerminated, schemas.StatusTimedOut, schemas.StatusContinuedAsNew,
	} {
		if name := "`schemas.Status" + strings.ToUpper(string(status[:1])) + string(status[1:]) + "`"; !strings.Contains(text, name) {
			t.Errorf("the glossary has no %s", name)
		}
	}
	commands := sourceText(t, "../cmd/drover")
	for _, word := range column(text, 4) {
		flag, isFlag := strings.CutPrefix(word, "--")
		there := strings.Contains(commands, `"`+word+`"`) || strings.Contains(commands, `"`+word+` `)
		if isFlag {
			there = strings.Contains(commands, `"`+flag+`"`)
		}
		if !there {
			t.Errorf("the command line has no %s", word)
		}
	}
	words := column(section(t, glossary, "## Words"), 0)
	if !slices.IsSorted(words) {
		t.Error("the words are not in the order of the alphabet")
	}
}

// sourceText is all production code below a folder.
func sourceText(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// Every function that the walk through the code names is there.
func TestArchitectureNamesFunctions(t *testing.T) {
	t.Parallel()
	page := read(t, "internals/architecture.md")
	for _, walk := range []string{"## One start", "## One outcome", "## One signal", "## One timer"} {
		if !strings.Contains(page, "\n"+walk+"\n") {
			t.Errorf("the page has no %q", walk)
		}
	}
	if checkGoNames(t, page) == 0 {
		t.Error("the page names no Go")
	}
}
