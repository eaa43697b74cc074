package zones

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	if Version() == "" {
		t.Error("no version")
	}
	if got := version([]string{"", t.TempDir()}); !strings.HasPrefix(got, "the database linked in by ") {
		t.Errorf("without a database: got %q", got)
	}
	for content, want := range map[string]string{"# version 2025b\n# more\n": "2025b in ", "": "the database in "} {
		dir := t.TempDir()
		for name, text := range map[string]string{"UTC": "x", "tzdata.zi": content} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := version([]string{"", "/nowhere", dir}); !strings.HasPrefix(got, want+dir) {
			t.Errorf("%q: got %q, want %s%s", content, got, want, dir)
		}
	}
}
