package guides_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/drovertest"
)

const otherLanguages = "../../examples/other-languages"

// The code of the guide stands in the examples, which are tested beside it.
func TestLanguagesAreTheExamples(t *testing.T) {
	var all strings.Builder
	for _, pattern := range []string{"node/*.mjs", "python/*.py"} {
		files, err := filepath.Glob(filepath.Join(otherLanguages, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v and %v, want some files", pattern, files, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	for language, want := range map[string]int{"js": 2, "python": 2} {
		found := blocks(t, languages, language)
		if len(found) != want {
			t.Errorf("%s: got %d blocks, want %d", language, len(found), want)
		}
		for _, block := range found {
			if !strings.Contains(all.String(), block) {
				t.Errorf("the guide's block stands in no file; got:\n%s", block)
			}
		}
	}
}

// The commands of the guide, on a copy of the examples, because npm writes beside them.
func TestLanguagesFromNothing(t *testing.T) {
	e := drovertest.Start(t, nil)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples/other-languages"), os.DirFS(otherLanguages)); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(e.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if m, err := nc.Request("$SRV.INFO.drover", nil, patience); err != nil || !strings.Contains(string(m.Data), "drover.default.api.terminate") {
		t.Fatalf("got %v and %v, want the verbs of the API", m, err)
	}
	out := runScript(t, dir, strings.Join(blocks(t, languages, "sh"), "\n"), "NATS_URL="+e.URL())
	for _, want := range []string{`"tea: charged by Python"`, `"cake: charged by `, "WorkflowSuccess"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
