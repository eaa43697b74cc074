// Command picture draws a picture from a description in text, so that both can be committed and a
// change of either is seen in a diff. It takes two file names: the description and the SVG to
// write.
//
// A description is a line for each thing, in the order of painting; "#" begins a comment:
//
//	size  WIDTH HEIGHT
//	group NAME X Y WIDTH HEIGHT "title"
//	box   NAME X Y WIDTH HEIGHT "title" "line" …
//	store NAME X Y WIDTH HEIGHT "title" "line" …
//	arrow FROM.SIDE TO.SIDE "label" [X,Y …]
//	both  FROM.SIDE TO.SIDE "label" [X,Y …]
//
// Lengths are pixels. A side is t, b, l or r, with the place on it in percent after it:
// "broker.b30". An arrow goes through its points, if it has any; both has two heads. The same
// description always gives the same bytes.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture DESCRIPTION SVG")
		os.Exit(2)
	}
	if err := convert(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func convert(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	svg, err := draw(in)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return os.WriteFile(to, []byte(svg), 0o644)
}

// draw turns a description into SVG.
func draw(in io.Reader) (string, error) {
	c := canvas{shapes: map[string]rect{}}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words, err := split(line)
		if err == nil {
			err = c.paint(words)
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return c.svg()
}

// split cuts a line into words; text in quotes is one word.
func split(line string) (words []string, err error) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		word, rest, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, `"`) {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				return nil, fmt.Errorf("%s: a quote is not closed", line)
			}
			rest = line[len(quoted):]
			if word, err = strconv.Unquote(quoted); err != nil {
				return nil, err
			}
		}
		words, line = append(words, word), rest
	}
	return words, nil
}
