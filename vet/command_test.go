package vet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What the page for beginners says is how the command is installed and used.
func TestCommand(t *testing.T) {
	page, err := os.ReadFile("../docs/start/first-workflow.md")
	if err != nil {
		t.Fatal(err)
	}
	const install, use = "go -C vet install ./drover-vet", "go vet -vettool=$(which drover-vet) ./..."
	if !strings.Contains(string(page), "```sh\n"+install+"\n"+use+"\n```") {
		t.Errorf("the page does not have\n%s\n%s", install, use)
	}
	bin := t.TempDir()
	if out, err := command(t, "..", bin, install); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := command(t, "testdata/helpers", bin, use)
	if err == nil || !strings.Contains(out, "time.Now in workflow code: use workflow.Now(ctx)") {
		t.Errorf("%v\n%s", err, out)
	}
}

func command(t *testing.T, dir, bin, line string) (string, error) {
	t.Helper()
	line = strings.ReplaceAll(line, "$(which drover-vet)", filepath.Join(bin, "drover-vet"))
	words := strings.Fields(line)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
