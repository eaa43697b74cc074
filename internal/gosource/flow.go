package gosource

import (
	"regexp"
	"strings"
)

// link is a link of a doc comment to a name in Go.
var link = regexp.MustCompile(`\[\*?([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)\]`)

// Flow turns the text of a comment into paragraphs of one line each, parted by empty lines. Lists
// and indented lines keep their lines. Links to Go names become those names.
func Flow(text string) string {
	var b strings.Builder
	newline := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			b.WriteString("\n\n")
			newline = true
			continue
		case !newline && (line[0] == '\t' || isItem(line)):
			b.WriteByte('\n')
		case !newline:
			b.WriteByte(' ')
		}
		b.WriteString(strings.TrimSpace(line))
		newline = false
	}
	return link.ReplaceAllString(strings.TrimSpace(b.String()), "$1")
}

// isItem tells whether a line begins an item of a list, as gofmt indents it.
func isItem(line string) bool {
	return strings.HasPrefix(line, "  - ") ||
		len(line) > 4 && line[0] == ' ' && line[1] >= '0' && line[1] <= '9'
}

// Paragraph returns the first paragraph of a text that [Flow] has made.
func Paragraph(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
