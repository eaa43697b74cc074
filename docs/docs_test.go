// Package docs_test keeps the papers true. The pages of docs/reference are made from the templates beside them and from
// the code: a line <!-- generated: NAME … --> of a template stands for what a generator here writes. "go test ./docs -update"
// makes them anew, and TestReference compares them. Pages that are written by hand may hold generated parts, between markers:
//
//	<!-- generated: NAME -->
//	…
//	<!-- /generated -->
//
// What only a person can tell, such as what to do about an error, is written by hand, and the tests here see to it that
// nothing is left out and nothing is left over.
package docs_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/gosource"
)

var update = flag.Bool("update", false, "rewrite what is generated in the papers")

// marked is a generated part of a page that is written by hand.
var marked = regexp.MustCompile(`(?s)<!-- generated: ([a-z-]+) -->\n(.*?)<!-- /generated -->\n`)

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var sources = map[string]*gosource.Package{}

// source reads the package in a folder, named from the root of the module, once. With schemas comes schemas/ops: no name
// is in both.
func source(t *testing.T, dir string) *gosource.Package {
	t.Helper()
	if sources[dir] == nil {
		dirs := []string{"../" + dir}
		if dir == "schemas" {
			dirs = append(dirs, "../schemas/ops")
		}
		p, err := gosource.Read(dirs...)
		if err != nil {
			t.Fatal(err)
		}
		sources[dir] = p
	}
	return sources[dir]
}

// section is the text below a heading, up to the next heading of its level or above.
func section(t *testing.T, file, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, file), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	for at := 0; ; {
		n := strings.Index(rest[at:], "\n#")
		if n < 0 {
			return rest
		}
		at += n + 1
		if line := rest[at:]; len(line)-len(strings.TrimLeft(line, "#")) <= level {
			return rest[:at]
		}
	}
}

// rows are the cells of all tables in a text, without their heads.
func rows(text string) [][]string {
	var all [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, cells)
	}
	return all
}

var code = regexp.MustCompile("`([^`]+)`")

// column gives the words in code font of one column of the tables in a text, sorted.
func column(text string, n int) []string {
	var all []string
	for _, r := range rows(text) {
		for _, m := range code.FindAllStringSubmatch(r[n], -1) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return all
}

// same compares what a paper names with what the code names.
func same(t *testing.T, what string, paper, code []string) {
	t.Helper()
	slices.Sort(paper)
	slices.Sort(code)
	if diff := cmp.Diff(code, paper); diff != "" {
		t.Errorf("%s (-code +paper):\n%s", what, diff)
	}
}

// table writes a table. Cells must be escaped with [text] where they are no code.
func table(head []string, body [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, r := range body {
		line(r)
	}
	return b.String()
}

var (
	pattern = regexp.MustCompile(`(drover[-.]|\$O\.|KV_)[^\s,;]*[^\s,;.:]|\{[^ ]*\}`)
	escape  = strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ")
)

// text makes one line of a comment for a table: its first paragraph, with subjects and JSON in code font.
func text(comment string) string {
	comment = gosource.Paragraph(comment)
	var b strings.Builder
	at := 0
	for _, m := range pattern.FindAllStringIndex(comment, -1) {
		b.WriteString(escape.Replace(comment[at:m[0]]))
		b.WriteString("`" + strings.ReplaceAll(comment[m[0]:m[1]], "|", `\|`) + "`")
		at = m[1]
	}
	b.WriteString(escape.Replace(comment[at:]))
	return b.String()
}
