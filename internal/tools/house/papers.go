package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

type paper struct {
	name         string
	bytes, lines int
}

// papers are the Markdown files. Those whose first line is a comment that begins with "generated"
// are not hand-written.
type papers struct {
	written, generated int // bytes
	longest            []paper
	readmeLines, adrs  int
}

func readPapers(root string) (all papers, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		base := path.Base(rel)
		if d.IsDir() {
			if rel != "." && base[0] == '.' || base == "node_modules" || base == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(rel) != ".md" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := bytes.Count(text, []byte("\n"))
		if rel == "README.md" {
			all.readmeLines = lines
		}
		if path.Base(path.Dir(rel)) == "adr" && base != "README.md" {
			all.adrs++
		}
		if strings.HasPrefix(string(text), "<!-- generated") {
			all.generated += len(text)
			return nil
		}
		all.written += len(text)
		all.longest = append(all.longest, paper{rel, len(text), lines})
		return nil
	})
	slices.SortFunc(all.longest, func(a, b paper) int { return b.bytes - a.bytes })
	all.longest = all.longest[:min(10, len(all.longest))]
	return all, err
}

func printPapers(all papers) {
	table("longest hand-written Markdown", "file\tKB\tlines", func(w io.Writer) {
		for _, p := range all.longest {
			fmt.Fprintf(w, "%s\t%.1f\t%d\n", p.name, kilobytes(p.bytes), p.lines)
		}
	})
	fmt.Printf("hand-written: %.0f KB, generated: %.0f KB; README: %d lines; ADRs: %d\n\n",
		kilobytes(all.written), kilobytes(all.generated), all.readmeLines, all.adrs)
}
