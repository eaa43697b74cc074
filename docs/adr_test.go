package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const decided = "internals/adr/"

// numbersOfADR finds the numbers in "ADR 12" and "ADR 0012", also where a comment breaks the line
// between the two.
var numbersOfADR = regexp.MustCompile(`\bADR[ \n]\s*(?://\s*)?(\d+)`)

// Every decision from the first to the last has one page, which exists and names it. No page is left
// out of the table.
func TestDecisionsHaveTheirPages(t *testing.T) {
	t.Parallel()
	pages := map[string][]int{}
	for i, row := range rows(read(t, decided+"README.md")) {
		if n, err := strconv.Atoi(row[0]); err != nil || n != i+1 {
			t.Fatalf("row %d of the table is about ADR %q", i+1, row[0])
		}
		link := regexp.MustCompile(`^\[.+\]\((.+)\)$`).FindStringSubmatch(row[2])
		if link == nil {
			t.Fatalf("ADR %d has no link to a page: %q", i+1, row[2])
		}
		pages[link[1]] = append(pages[link[1]], i+1)
	}
	for page, want := range pages {
		line := regexp.MustCompile(`(?m)^ADR ([\d, ]+)\.$`).FindStringSubmatch(read(t, decided+page))
		if line == nil {
			t.Errorf("%s has no line of its numbers, such as \"ADR 1, 2.\"", page)
			continue
		}
		var got []int
		for text := range strings.SplitSeq(line[1], ", ") {
			n, _ := strconv.Atoi(text)
			got = append(got, n)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s says that it has %v, the table says %v", page, got, want)
		}
	}
	entries, err := os.ReadDir(decided)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "README.md" && pages[e.Name()] == nil {
			t.Errorf("the table does not name %s", e.Name())
		}
	}
}

// Every decision that code or papers cite is in the table.
func TestCitedDecisionsAreThere(t *testing.T) {
	t.Parallel()
	last := len(rows(read(t, decided+"README.md")))
	suffixes := []string{".go", ".md", ".txt", ".sh", ".py", ".js", ".yaml", ".yml"}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(suffixes, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, cited := range numbersOfADR.FindAllStringSubmatch(string(text), -1) {
			if n, err := strconv.Atoi(cited[1]); err != nil || n < 1 || n > last {
				t.Errorf("%s cites ADR %s, and the last one is %d", path, cited[1], last)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
