// Package docs_test keeps the papers true. What a program can tell is generated between markers:
//
//	<!-- generated: NAME -->
//	…
//	<!-- /generated -->
//
// and compared with the code by TestGenerated; "go test ./docs -update" writes it anew. What only a person can tell, such as
// what to do about an error, is written by hand, and the tests here see to it that nothing is left out and nothing is left
// over.
package docs_test

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/internal/gosource"
)

var update = flag.Bool("update", false, "rewrite what is generated in the papers")

const (
	formats = "formats.md"
	faults  = "errors.md"
)

var marked = regexp.MustCompile(`(?s)<!-- generated: ([a-z-]+) -->\n(.*?)<!-- /generated -->\n`)

// blocks are the generators by the names of the markers in formats.md.
var blocks = map[string]func(*testing.T) string{
	"tokens":              tokens,
	"subjects":            subjects,
	"wildcards":           wildcards,
	"names":               names,
	"streams":             streams,
	"units":               units,
	"payloads":            payloadTable,
	"record-words":        recordWords,
	"record-events":       recordEvents,
	"api":                 api,
	"namespace-api":       namespaceAPI,
	"messages":            messages,
	"parts":               parts,
	"enumerations":        enumerations,
	"events":              events,
	"event-attributes":    eventAttributes,
	"decisions":           decisions,
	"decision-attributes": decisionAttributes,
	"limits":              limits,
}

func TestGenerated(t *testing.T) {
	file := read(t, formats)
	seen := map[string]bool{}
	now := marked.ReplaceAllStringFunc(file, func(block string) string {
		name := marked.FindStringSubmatch(block)[1]
		if blocks[name] == nil {
			t.Fatalf("%s: nothing generates %q", formats, name)
		}
		seen[name] = true
		return "<!-- generated: " + name + " -->\n\n" + strings.TrimSpace(blocks[name](t)) + "\n\n<!-- /generated -->\n"
	})
	for name := range maps.Keys(blocks) {
		if !seen[name] {
			t.Errorf("%s has no markers for %q", formats, name)
		}
	}
	if *update {
		if err := os.WriteFile(formats, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(file, now); diff != "" {
		t.Fatalf("%s does not say what the code says; run: go test ./docs -update\n(-file +code)\n%s", formats, diff)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var sources = map[string]*gosource.Package{}

// source reads the package in a folder, named from the root of the module, once.
func source(t *testing.T, dir string) *gosource.Package {
	t.Helper()
	if sources[dir] == nil {
		p, err := gosource.Read("../" + dir)
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
