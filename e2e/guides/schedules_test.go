package guides_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/droverhq/drover/e2e/kit"
)

const schedules = "guides/schedules.md"

// S2-3, S2-5, S2-11, S2-12, S2-14: the commands of the guide to schedules, one after the other,
// against a server with all roles.
func TestSchedulesGuide(t *testing.T) {
	script := strings.Join(blocks(t, schedules, "sh"), "\n")
	// A run of an always-on workflow is there a moment after the command.
	script = strings.Replace(
		script, "drover hold poller",
		"until drover describe poller >/dev/null 2>&1; do sleep 0.1; done\ndrover hold poller", 1,
	)
	// The flow of the guide does what it is for: it ends with an error if it lacks its input.
	script += "\ndrover start report --wait --input '{\"slot\": \"today\"}'"
	// The runs of the schedule end a moment after the commands that ask for them.
	script = strings.Replace(
		script, "drover operations --limit 10", `
for _ in $(seq 100); do
  drover schedule show nightly | grep -q "started 3, done 3" && break
  sleep 0.1
done
drover schedule show nightly
drover operations --limit 10`, 1,
	)
	out := runScript(t, t.TempDir(), script, "NATS_URL="+serveAlone(t), "HOME="+t.TempDir())
	for _, want := range []string{
		"created schedule nightly\nnext  ", "triggered schedule nightly", "paused schedule nightly",
		"resumed schedule nightly", "updated schedule nightly", "2 times to do for schedule nightly",
		"started 3, done 3", "scheduleCreated", "created schedule workdays", "created schedule daily", "first of 20",
		"make the report", "not the first of 20", "it is made: 6", "added always-on workflow poller",
		"held poller", "released poller", "stopped always-on workflow poller",
		"started always-on workflow poller", "03:30 Europe/Berlin",
		"removed always-on workflow poller", "deleted schedule nightly",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
}

// serveAlone runs a server with all roles, in memory, on a port of its own, until the test ends.
func serveAlone(t *testing.T) (url string) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(binary, "server", "--json", "--memory", "--port", "-1")
	cmd.Env = append(cmd.Environ(), "XDG_CONFIG_HOME=", "HOME="+home)
	server := kit.Start(t, filepath.Join(home, "server.log"), cmd)
	t.Cleanup(func() { server.Stop(patience) })
	var ready struct{ URL string }
	server.Ready(patience, &ready)
	return ready.URL
}
