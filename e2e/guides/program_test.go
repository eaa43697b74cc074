package guides_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/droverhq/drover/drovertest"
)

// The Go code of the guide is that of the example, which is compiled and tested with everything else.
func TestOwnWorkerIsTheExample(t *testing.T) {
	files := ownWorkerFiles(t)
	if len(files) != 3 {
		t.Fatalf("got %d files, want 3", len(files))
	}
	for name, text := range files {
		want, err := os.ReadFile(filepath.Join("../../examples/ownworker", name))
		if err != nil {
			t.Fatal(err)
		}
		if text != string(want) {
			t.Errorf("the guide's %s is not examples/ownworker/%s: copy the file into the guide", name, name)
		}
	}
}

// titled is a sentence that begins with the name of a file, and the code block after it.
var titled = regexp.MustCompile("(?ms)^`([a-z_]+\\.go)` [^`]*?(?:`[^`\n]+`[^`]*?)*\n\n```go\n(.*?)^```$")

func ownWorkerFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, m := range titled.FindAllStringSubmatch(read(t, ownWorker), -1) {
		files[m[1]] = m[2]
	}
	return files
}

// A module outside the repository, made by the guide's commands.
func TestOwnWorkerFromNothing(t *testing.T) {
	e := drovertest.Start(t, nil)
	dir := t.TempDir()
	if err := os.Symlink(root(t), filepath.Join(dir, "drover")); err != nil {
		t.Fatal(err)
	}
	script := blocks(t, ownWorker, "sh")
	for name, text := range ownWorkerFiles(t) {
		script[0] += "cat >" + name + " <<'END OF FILE'\n" + text + "END OF FILE\n"
	}
	// A Drover for tests has no index.
	for i := range script {
		script[i] = strings.ReplaceAll(script[i], "drover list\n", "drover list --scan\n")
	}
	// Without -trimpath the compiler's cache is one for each folder: all of Drover would be compiled anew.
	out := runScript(t, dir, strings.Join(script, "\n"), "NATS_URL="+e.URL(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off")
	for _, want := range []string{"ok  \texample.com/welcome", `"confirmed"`, "signal=confirmed", "no-address", "exit code 1", "failed", "completed"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
