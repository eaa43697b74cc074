package guides_test

import (
	"strings"
	"testing"
)

// The commands of the guide to acts on many, one after the other, against a server with all roles.
func TestBulkGuide(t *testing.T) {
	script := strings.Join(blocks(t, "guides/act-on-many.md", "sh"), "\n")
	// Jobs go on after the commands that begin them: the next ones need what these have done.
	for _, begins := range []string{"drover bulk resume", "drover bulk signal", "drover bulk terminate"} {
		script = strings.Replace(script, begins, `ends=$(`+begins, 1)
	}
	lines := strings.Split(script, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "ends=$(") {
			lines[i] = line + ` --json | cut -d '"' -f 4)` + "\n" + `drover result "$ends"`
		}
	}
	out := runScript(t, t.TempDir(), strings.Join(lines, "\n"), "NATS_URL="+serveAlone(t), "HOME="+t.TempDir())
	for _, want := range []string{
		"would cancel 3 runs", "order-2", `"done":3`, "done           3", "nothing to do  0",
		"pause: type = 'order'", `"action":"resume"`, `"action":"signal"`, `"action":"terminate"`, "would delete 3 runs",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}
