package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// required are the numbered requirements by their families, each from 1 to the last: of locks, replays and retention (A0), of
// events and who writes them (S1), of always-on workflows, windows and recycles (S2), of recovery (S3), and of the protocol (P).
// The other families are in the tests by their subjects.
var required = map[string]int{"A0": 18, "S1": 48, "S2": 14, "S3": 16, "P": 16}

// coming are those that nothing meets yet. Whoever writes the first test of one takes it out.
var coming []string

// numberOf finds numbers in texts, S3-5 or S3-05, and in the names of tests, TestS3_05.
var numberOf = regexp.MustCompile(`(?:\b|Test)(A0|S1|S2|S3|P)[-_]0*(\d+)`)

// Each requirement is borne by a test that has its number: in the comment above it, in its body, or in a script that it runs. With -v it
// shows which.
func TestRequirementsHaveTests(t *testing.T) {
	bearers := map[string][]string{}
	for _, text := range readTestTexts(t) {
		for _, found := range numberOf.FindAllStringSubmatch(text.text, -1) {
			number := found[1] + "-" + found[2]
			if !slices.Contains(bearers[number], text.by) {
				bearers[number] = append(bearers[number], text.by)
			}
		}
	}
	var table strings.Builder
	for _, family := range slices.Sorted(maps.Keys(required)) {
		for n := 1; n <= required[family]; n++ {
			number := fmt.Sprintf("%s-%d", family, n)
			switch borne := len(bearers[number]) > 0; {
			case !borne && !slices.Contains(coming, number):
				t.Errorf("no test bears %s: write it into the comment above the test that would fail without it", number)
			case borne && slices.Contains(coming, number):
				t.Errorf("%s is borne by %s: take it out of the list of those that are to come", number, bearers[number])
			}
			fmt.Fprintf(&table, "\n%-6s %s", number, strings.Join(bearers[number], ", "))
		}
	}
	t.Log(table.String())
	for number := range bearers {
		family, text, _ := strings.Cut(number, "-")
		if n, err := strconv.Atoi(text); err != nil || n < 1 || n > required[family] {
			t.Errorf("%s: there is no %s, the last of its family is %s-%d", bearers[number], number, family, required[family])
		}
	}
}

// tagOf finds all tags of requirements: those of the numbered families, and I15 and E6 of the others. House has it too.
var tagOf = regexp.MustCompile(`(?:\b|Test)(?:(A0|S1|S2|S3|P)[-_]0*(\d+)|([IE])([1-9]\d?)\b)`)

// A test may go, but no tag: what it showed, another test shows. tags.txt has the tags that tests must have.
func TestRequirementsHaveTheirTags(t *testing.T) {
	stand := map[string]bool{}
	for _, text := range readTestTexts(t) {
		for _, m := range tagOf.FindAllStringSubmatch(text.text, -1) {
			if m[1] != "" {
				stand[m[1]+"-"+m[2]] = true
			} else {
				stand[m[3]+m[4]] = true
			}
		}
	}
	list, err := os.ReadFile("../internal/tools/tags.txt")
	if err != nil {
		t.Fatal(err)
	}
	tags := strings.Fields(string(list))
	if len(tags) == 0 {
		t.Fatal("tags.txt is empty")
	}
	for _, tag := range tags {
		if !stand[tag] {
			t.Errorf("no test has the tag %s any more: write it above the test that would fail without it", tag)
		}
	}
}

// testText is the source of a test with its comment, or a script that tests run.
type testText struct{ by, text string }

func readTestTexts(t *testing.T) (texts []testText) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := strings.TrimPrefix(filepath.ToSlash(path), "../"); {
		case err != nil || d.IsDir():
			return err
		case strings.HasSuffix(path, "_test.go"):
			found, err := readTests(path)
			texts = append(texts, found...)
			return err
		case filepath.Ext(path) == ".txt" && strings.Contains(name, "/testdata/"):
			text, err := os.ReadFile(path)
			texts = append(texts, testText{name, string(text)})
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// readTests returns the tests of a file, with their comments. What stands elsewhere is no test.
func readTests(path string) (texts []testText, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") && !strings.HasPrefix(fn.Name.Name, "Fuzz") {
			continue
		}
		if strings.HasPrefix(fn.Name.Name, "TestRequirementsHave") {
			continue // it only lists numbers
		}
		from := fn.Pos()
		if fn.Doc != nil {
			from = fn.Doc.Pos()
		}
		texts = append(texts, testText{
			by:   strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../") + "." + fn.Name.Name,
			text: string(text[fset.Position(from).Offset:fset.Position(fn.End()).Offset]),
		})
	}
	return texts, nil
}

// The page of the rules has each of them, in order.
func TestProtocolPageHasTheRules(t *testing.T) {
	page, err := os.ReadFile("learn/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, rule := range regexp.MustCompile(`(?m)^\*\*(P-\d+) `).FindAllStringSubmatch(string(page), -1) {
		got = append(got, rule[1])
	}
	for n := 1; n <= required["P"]; n++ {
		want = append(want, fmt.Sprintf("P-%d", n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got the rules %v, want %v", got, want)
	}
}
