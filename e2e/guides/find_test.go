package guides_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
)

const find = "guides/find-workflows.md"

// The commands of the guide, one after the other, with what each of them finds.
func TestFindGuide(t *testing.T) {
	script := strings.Join(blocks(t, find, "sh"), "\n")
	// A reader is slower than the two runs, and than the index.
	script = strings.Replace(script, "\ndrover list", `
until [ "$(drover count --json "status = closed")" = '{"count":2}' ]; do sleep 0.1; done
drover list`, 1)
	script = strings.ReplaceAll(script, "\ndrover list", "\necho --; drover list --json")
	script = strings.ReplaceAll(script, "\ndrover count", "\necho --; drover count --json")
	url := serveAlone(t)
	parts := strings.Split(runScript(t, t.TempDir(), script, "NATS_URL="+url, "HOME="+t.TempDir()), "--\n")
	var got []string
	for _, out := range parts[1:] {
		var found []string
		for _, word := range []string{"ada-1", "bob-1", "completed", "failed"} {
			if strings.Contains(out, `"`+word+`"`) {
				found = append(found, word)
			}
		}
		got = append(got, strings.Join(found, " "))
	}
	want := []string{
		"ada-1 bob-1 completed failed",
		"bob-1 failed", "bob-1 failed", "ada-1 completed", "bob-1 failed", "bob-1 failed",
		"completed failed", "", "",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q:\n%s", got, want, strings.Join(parts, "--\n"))
	}

	// The slip, as the guide shows it.
	slip := blocks(t, find, "text")
	if len(slip) != 1 {
		t.Fatalf("got %d blocks, want 1", len(slip))
	}
	_, said, _ := strings.Cut(slip[0], "\n")
	cmd := exec.Command(binary, "list", "statsu = failed")
	cmd.Env = append(cmd.Environ(), "NATS_URL="+url)
	if r := kit.Run(t, cmd); r.Code == 0 || !strings.HasPrefix(r.Stderr, said) {
		t.Errorf("got %+v, want the error\n%s", r, said)
	}
}
