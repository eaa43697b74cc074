package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// U7: the papers of the project are there, say the same, and the README leads to them.
func TestPapersOfTheProject(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	readme := read("README.md")
	for name, words := range map[string][]string{
		"LICENSE":         {"Apache License", "Version 2.0, January 2004", "Copyright The Drover Authors", "END OF TERMS AND CONDITIONS"},
		"SECURITY.md":     {"Report a vulnerability", "There is no release yet"},
		"CONTRIBUTING.md": {"make test", "(SECURITY.md)", "(LICENSE)"},
		"CHANGELOG.md":    {"## [Unreleased]"},
	} {
		text := read(name)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q", name, w)
			}
		}
		if !strings.Contains(readme, "]("+name+")") {
			t.Errorf("README.md has no link to %s", name)
		}
	}
	if n := strings.Count(read("CONTRIBUTING.md"), "\n"); n > 60 {
		t.Errorf("CONTRIBUTING.md has %d lines, want at most 60", n)
	}
	// One truth: who says that there is no release must not list one.
	if v := regexp.MustCompile(`(?m)^## \[[0-9].*`).FindString(read("CHANGELOG.md")); v != "" && strings.Contains(readme, "there is no release yet") {
		t.Errorf("README.md says that there is no release yet, and CHANGELOG.md has %q", v)
	}
}
