// House measures this repository: bytes and lines by package, the largest structs, the width of
// lines, words that are to go, hand-written papers, and the requirement tags in tests. Its last
// table compares the sums with their limits.
//
// It reports and does not judge: it exits with 0 however many limits are exceeded. It parses and
// does not type-check, so it takes a second. Production code is every Go file that is no test,
// apart from bench, examples, docs and e2e, which have lines of their own in the table of packages,
// and from nested modules of tools.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	root := flag.String("root", ".", "the checkout to measure")
	words := flag.String("words", "house-words.txt", "the file of words that are to go")
	tags := flag.Bool("tags", false, "print the requirement tags in tests, and nothing else")
	flag.Parse()
	if err := run(*root, *words, *tags); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(root, words string, onlyTags bool) error {
	files, err := readSources(root)
	if err != nil {
		return err
	}
	tags, err := findTags(root, files)
	if err != nil {
		return err
	}
	if onlyTags {
		for _, tag := range tags {
			fmt.Println(tag)
		}
		return nil
	}
	rules, err := readWords(words)
	if err != nil {
		return err
	}
	left, err := findWords(rules, root, files)
	if err != nil {
		return err
	}
	papers, err := readPapers(root)
	if err != nil {
		return err
	}
	packages := byPackage(files)
	structs := findStructs(files)
	wide := widths(files)

	printPackages(packages)
	printStructs(structs)
	printWidths(wide)
	printWords(left)
	printPapers(papers)
	printTags(tags)
	printBars([]bar{
		{
			"production without bench, bytes of code", "0.93 of the first commit",
			fmt.Sprint(production(packages).code),
		},
		{
			"largest package with goroutines, lines (natsconn aside)", "3500",
			largest(packages, true),
		},
		{"largest package without, lines", "5500", largest(packages, false)},
		{"fields of Partition", "15", fieldsOf(structs, "Partition")},
		{"largest struct that is not stored or sent, fields", "25", largestStruct(structs)},
		{"pairs of package and word left", "0", fmt.Sprint(len(left))},
		{"lines over 120 columns", "0", fmt.Sprint(wide.over120)},
		{"lines over 100 columns", "2.0 %", percent(wide.over100, wide.lines)},
		{`"behind" in Go`, "30", fmt.Sprint(wide.behind)},
		{"hand-written Markdown, KB", "300", fmt.Sprintf("%.0f", kilobytes(papers.written))},
		{"README, lines", "150", fmt.Sprint(papers.readmeLines)},
		{"ADRs", "25", fmt.Sprint(papers.adrs)},
		{"requirement tags in tests", "as in tags.txt", fmt.Sprint(len(tags))},
	})
	return nil
}

type bar struct{ what, limit, now string }

func printBars(bars []bar) {
	table("bars", "bar\tlimit\tnow", func(w io.Writer) {
		for _, b := range bars {
			fmt.Fprintf(w, "%s\t%s\t%s\n", b.what, b.limit, b.now)
		}
	})
}

// table prints a title, a line of column names and the lines that rows writes, whose cells are
// parted by tabs.
func table(title, columns string, rows func(io.Writer)) {
	fmt.Printf("== %s\n", title)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, columns)
	rows(w)
	w.Flush()
	fmt.Println()
}

func percent(part, all int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(all, 1)))
}

func kilobytes(bytes int) float64 { return float64(bytes) / 1024 }
