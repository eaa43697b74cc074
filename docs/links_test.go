package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	links = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// Every link of a page leads to a file that is there, and to a heading that it has.
func TestLinks(t *testing.T) {
	known := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "node_modules"}, d.Name()):
			return fs.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		for _, m := range links.FindAllStringSubmatch(fence.ReplaceAllString(read(t, path), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), filepath.FromSlash(target))
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
				continue
			}
			if anchor == "" || filepath.Ext(to) != ".md" {
				continue
			}
			if known[to] == nil {
				known[to] = anchors(fence.ReplaceAllString(read(t, to), ""))
			}
			if !slices.Contains(known[to], anchor) {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
