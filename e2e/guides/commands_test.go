package guides_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The commands of the guide, one after the other, as somebody would type them who has just started NATS with its
// configuration. At the end nothing is left but what the guide says.
func TestCommands(t *testing.T) {
	url := startNATS(t)
	script := strings.Join(blocks(t, yourNATS, "sh"), "\n")
	if !strings.Contains(script, "drover start") || !strings.Contains(script, "delete default") {
		t.Fatalf("got the script\n%s\nwant it to start a workflow and to delete the namespace", script)
	}
	script = strings.ReplaceAll(script, "nats://127.0.0.1:4222", url)
	out := runScript(t, root(t), script, "HOME="+t.TempDir())
	for _, want := range []string{"partitions   4", `{"charged": ["tea: charged by Python"]}`, "WorkflowSuccess", "namespace tests has 1 partition", "deleted namespace default"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	// The operator may not look; the server may.
	nc, _ := plain(t, url, "server")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for name := range js.StreamNames(t.Context()).Name() {
		left = append(left, name)
	}
	if want := []string{"KV_drover-nodes"}; !slices.Equal(left, want) {
		t.Fatalf("got the streams %v in the end, want %v", left, want)
	}
}

// The table of streams, compared with those of a namespace.
func TestStreams(t *testing.T) {
	url := startNATS(t)
	serve(t, url)
	guide := read(t, yourNATS)
	nc, _ := plain(t, url, "server")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	openList(t, nc)
	count := 0
	for name := range js.StreamNames(t.Context()).Name() {
		count++
		name = strings.NewReplacer("-0", "-<p>", "-1", "-<p>", "-2", "-<p>", "-3", "-<p>", "billing", "<list>").Replace(name)
		if !strings.Contains(guide, "`"+name+"`") {
			t.Errorf("the guide says nothing of the stream %s", name)
		}
	}
	if want := 22 + 1 + 1; count != want {
		t.Errorf("got %d streams, want %d: those of the namespace, of a list, and the nodes", count, want)
	}
}

// openList makes the task list billing, as soon as somebody answers.
func openList(t *testing.T, nc *nats.Conn) {
	t.Helper()
	tick, limit := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		_, err := nc.Request("drover.default.api.tasklist", []byte(`{"list":"billing"}`), patience)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal(err)
		}
	}
}

// root is the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// runScript runs a script of bash with the drover binary in its path, and ends what it started.
func runScript(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), append(env, "XDG_CONFIG_HOME=", "PATH="+filepath.Dir(binary)+string(filepath.ListSeparator)+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	failed := cmd.Wait()
	// The servers and workers in the background are of the same group. Those of the guide's users are stopped in good order.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	awaitGroup(cmd.Process.Pid)
	out, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatalf("the script ended with %v:\n%s", failed, out)
	}
	return string(out)
}

// awaitGroup waits until a process group has no member, and ends it by force if that takes too long.
func awaitGroup(group int) {
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if syscall.Kill(-group, 0) != nil {
			return
		}
		if time.Now().After(deadline) {
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}
