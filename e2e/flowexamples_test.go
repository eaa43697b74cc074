package e2e

import (
	"fmt"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples of flows as a user runs them: by commands alone, on a server as it is shipped and a worker that needs no program.
func TestFlowExamplesByCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	files, err := filepath.Glob("../examples/flows/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	if r := runDrover(t, w.url, append([]string{"flow", "deploy"}, files...)...); r.Code != 0 {
		t.Fatalf("flow deploy: got %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	list := runDrover(t, w.url, "flow", "list")
	for _, name := range []string{"apt-get", "counter", "install", "nightly", "start", "stop", "try-lock", "vm"} {
		if !strings.Contains(list.Stdout, name) {
			t.Errorf("flow list: %s is missing in\n%s%s", name, list.Stdout, list.Stderr)
		}
	}
	s := &counts{n: 41}
	site := httptest.NewServer(s)
	t.Cleanup(site.Close)
	worker := exec.Command(binary, "worker", "--list", "main")
	worker.Env = append(worker.Environ(), "NATS_URL="+w.url)
	spawn(t, w.dir, "worker", worker)
	for want := 42; want < 45; want++ {
		r := runDrover(t, w.url, "start", "counter", "--id", fmt.Sprint("c-", want), "--input", fmt.Sprintf(`{"url": %q}`, site.URL), "--wait")
		if r.Code != 0 || !strings.Contains(r.Stdout, fmt.Sprint(want)) {
			t.Fatalf("start counter --wait: got %d, %s%s, want %d", r.Code, r.Stdout, r.Stderr, want)
		}
	}
	w.verify()
}
