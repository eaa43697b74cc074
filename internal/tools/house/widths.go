package main

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// tab is how many columns a tab stands for.
const tab = 4

var behind = regexp.MustCompile(`(?i)\bbehind\b`)

// width is what the lines of Go amount to. Columns are counted in production code, bench aside;
// "behind" in all Go code.
type width struct{ lines, over100, over120, widest, behind, behindInTests int }

func widths(files []source) (all width) {
	for _, f := range files {
		n := len(behind.FindAll(f.text, -1))
		all.behind += n
		if f.test {
			all.behindInTests += n
			continue
		}
		if !(&pack{name: f.pkg}).product() {
			continue
		}
		for line := range bytes.Lines(f.text) {
			columns := columnsOf(strings.TrimRight(string(line), "\r\n"))
			all.lines++
			if columns > 100 {
				all.over100++
			}
			if columns > 120 {
				all.over120++
			}
			all.widest = max(all.widest, columns)
		}
	}
	return all
}

func columnsOf(line string) int {
	return utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
}

func printWidths(all width) {
	table("lines of production Go", "\tlines\tpart", func(w io.Writer) {
		fmt.Fprintf(w, "all\t%d\t\n", all.lines)
		fmt.Fprintf(w, "over 100 columns\t%d\t%s\n", all.over100, percent(all.over100, all.lines))
		fmt.Fprintf(w, "over 120 columns\t%d\t%s\n", all.over120, percent(all.over120, all.lines))
		fmt.Fprintf(w, "columns of the widest\t%d\t\n", all.widest)
	})
	fmt.Printf("a tab is %d columns; \"behind\" in Go: %d, %d of them in tests\n\n",
		tab, all.behind, all.behindInTests)
}
