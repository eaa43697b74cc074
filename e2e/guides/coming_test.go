package guides_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
)

// What the mapping table names is there: the words on the wire in schemas, the commands in the binary.
func TestComingNamesWhatIsThere(t *testing.T) {
	guide := read(t, coming)
	var files []string
	for _, pattern := range []string{"../../schemas/*.go", "../../schemas/ops/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	var schemas strings.Builder
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		schemas.Write(text)
	}
	words := regexp.MustCompile(`\b[A-Z]+_[A-Z_]+\b|\b(?:FAIL|ALLOW|REJECT|TERMINATE)\b`).FindAllString(guide, -1)
	for _, m := range regexp.MustCompile("`([a-z]+[A-Z][A-Za-z]*)`").FindAllStringSubmatch(guide, -1) {
		words = append(words, m[1])
	}
	if len(words) < 10 {
		t.Fatalf("got the words %v, want more", words)
	}
	for _, w := range words {
		if !strings.Contains(schemas.String(), `"`+w) {
			t.Errorf("the table names %q, which is not in schemas", w)
		}
	}
	for _, m := range regexp.MustCompile("`drover ([a-z]+)( [a-z]+)?").FindAllStringSubmatch(guide, -1) {
		args := append(strings.Fields(m[1]+m[2]), "--help")
		r := kit.Run(t, exec.Command(binary, args...))
		if r.Code != 0 || !strings.Contains(r.Stdout, "drover "+m[1]+m[2]) {
			t.Errorf("drover %s: got %+v", strings.Join(args, " "), r)
		}
	}
}
