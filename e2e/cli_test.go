package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/e2e/load"
)

// commandLine runs the binary as a user does: command after command, against one server. Workflows of type order are
// completed by a stranger, those of type load by our own workers, and nobody serves type lonely.
type commandLine struct {
	*world
	nc    *nats.Conn
	stdin string // of the next command
	args  []string
	last  kit.Result
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	server := w.embedded("--profile", "dev")
	w.role("stranger-decider", "order")
	w.role("decider", load.Type)
	w.role("worker", load.List)
	nc := w.plain()
	for name, fn := range map[string]func(*commandLine){
		"start and result": cliStart, "history": cliHistory, "signal": cliSignal, "why, list, dead, verify": cliLook,
	} {
		t.Run(name, func(t *testing.T) { fn(&commandLine{world: w.in(t), nc: nc}) })
	}
	server.Alive()
	w.verify()
}

// exits runs a command, whose exit code must be code.
func (c *commandLine) exits(code int, args ...string) {
	c.t.Helper()
	c.args, c.last = args, runDroverWith(c.t, c.url, c.stdin, args...)
	c.stdin = ""
	if c.last.Code != code {
		c.t.Fatalf("drover %q: got exit code %d, want %d\nstdout: %s\nstderr: %s", args, c.last.Code, code, c.last.Stdout, c.last.Stderr)
	}
}

// prints demands that a line of the last command's standard output matches.
func (c *commandLine) prints(pattern string) {
	c.t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(c.last.Stdout) {
		c.t.Errorf("drover %q: stdout does not match %q:\n%s", c.args, pattern, c.last.Stdout)
	}
}

// lines demands that exactly n lines of standard output match.
func (c *commandLine) lines(n int, pattern string) {
	c.t.Helper()
	if got := len(regexp.MustCompile("(?m)"+pattern).FindAllString(c.last.Stdout, -1)); got != n {
		c.t.Errorf("drover %q: %d lines of stdout match %q, want %d:\n%s", c.args, got, pattern, n, c.last.Stdout)
	}
}

// complains is prints for standard error.
func (c *commandLine) complains(pattern string) {
	c.t.Helper()
	if !regexp.MustCompile("(?m)" + pattern).MatchString(c.last.Stderr) {
		c.t.Errorf("drover %q: stderr does not match %q:\n%s", c.args, pattern, c.last.Stderr)
	}
}

// silent demands that standard output is empty.
func (c *commandLine) silent() {
	c.t.Helper()
	if c.last.Stdout != "" {
		c.t.Errorf("drover %q: got stdout %q, want none", c.args, c.last.Stdout)
	}
}

// publish is what any NATS client does.
func (c *commandLine) publish(subj, body string) {
	c.t.Helper()
	if err := c.nc.Publish(subj, []byte(body)); err != nil {
		c.t.Fatal(err)
	}
	if err := c.nc.Flush(); err != nil {
		c.t.Fatal(err)
	}
}

// Without a server the exit code is 3, whatever is asked.
func TestCommandLineWithoutServer(t *testing.T) {
	t.Parallel()
	url := fmt.Sprintf("nats://127.0.0.1:%d", kit.FreePort(t))
	for _, args := range [][]string{{"start", "order"}, {"signal", "a", "b"}, {"history", "a"}, {"result", "a"}, {"list"}, {"why", "a"}, {"dead"}, {"verify"}} {
		if r := runDrover(t, url, args...); r.Code != 3 || r.Stdout != "" {
			t.Errorf("drover %v: got code %d, stdout %q, want 3 and nothing", args, r.Code, r.Stdout)
		}
	}
}

const loadJSON = `{"steps": 3, "timer": 10}`

// file writes a file into the world's folder and returns its path.
func (c *commandLine) file(name, content string) string {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		c.t.Fatal(err)
	}
	return path
}

func cliStart(c *commandLine) {
	// Start --wait prints the result, and nothing else, on stdout.
	c.exits(0, "start", "order", "--id", "s-1", "--input", `{"n":1}`, "--wait", "--timeout", "60s")
	c.prints(`^"done"$`)
	c.lines(0, "started")
	c.complains("started s-1 run ")
	c.exits(0, "start", "order", "--id", "s-2", "--json", "--wait", "--timeout", "60s")
	c.prints(`^{"workflowId":"s-2","run":"[0-9A-Z]+","status":"completed","result":"done"}$`)
	// Input from a file, from stdin, raw.
	c.exits(0, "start", "load", "--id", "s-3", "--input", "@"+c.file("load.json", loadJSON), "--wait", "--timeout", "60s")
	c.prints(`^"1;4;9;"$`)
	c.stdin = loadJSON
	c.exits(0, "start", "load", "--id", "s-4", "--input", "-", "--wait", "--timeout", "60s")
	c.prints(`^"1;4;9;"$`)
	// A workflow that fails: exit code 1, with its reason, and stdout stays empty.
	c.exits(1, "start", "load", "--id", "s-5", "--input", `{"steps":"many"}`, "--wait", "--timeout", "60s")
	c.silent()
	c.complains("failed: bad-input")
	c.exits(1, "result", "s-5", "--timeout", "60s")
	c.complains(`workflow "s-5" run [0-9A-Z]+: failed: bad-input`)
	c.exits(1, "result", "s-5", "--json", "--timeout", "60s")
	c.prints(`"status":"failed","reason":"bad-input"`)
	// Without --wait.
	c.exits(0, "start", "lonely", "--id", "s-6")
	c.prints("^started s-6 run [0-9A-Z]+$")
	c.exits(1, "start", "lonely", "--id", "s-6")
	c.complains(`drover: start "s-6"`)
	c.complains("is open already")
	// Wrong usage: exit code 2, and nothing is started.
	c.exits(2, "start")
	c.complains("TYPE is missing")
	c.exits(2, "start", "order", "--id", "s-7", "--input", "{")
	c.complains("not JSON")
	c.exits(1, "describe", "s-7")
	c.complains(`there is no workflow with the id "s-7": it was never started, or is purged`)
}

func cliHistory(c *commandLine) {
	// One event a line, and exactly the five of an empty run (S1-44).
	c.exits(0, "start", "order", "--id", "h-1", "--wait", "--timeout", "60s")
	c.exits(0, "history", "h-1", "--json")
	c.lines(5, `^{"id":[0-9]+,"type":"[A-Za-z]+","time":"[0-9TZ:.-]+","attributes":{`)
	c.lines(1, `^{"id":1,"type":"WorkflowStarted",`)
	c.lines(1, `^{"id":2,"type":"DeciderScheduled",`)
	c.lines(1, `^{"id":3,"type":"DeciderStarted",`)
	c.lines(1, `^{"id":4,"type":"DeciderCompleted",`)
	c.lines(1, `^{"id":5,"type":"WorkflowSuccess",`)
	// For people: the same five.
	c.exits(0, "history", "h-1")
	c.lines(5, `^ +[0-9]+  +\+[0-9.]+s  [A-Z]`)
	// --follow ends with the run.
	c.exits(0, "start", "load", "--id", "h-2", "--input", `{"steps":2,"timer":50}`)
	c.exits(0, "history", "h-2", "--follow", "--json", "--timeout", "60s")
	c.prints(`"type":"TimerExpired"`)
	c.lines(2, `"type":"ActivitySuccess"`)
	c.prints(`"type":"WorkflowSuccess"`)
	c.exits(1, "history", "nobody")
	c.complains(`there is no workflow with the id "nobody": it was never started, or is purged`)
	c.silent()
}

func cliSignal(c *commandLine) {
	// A workflow that waits for two signals.
	c.exits(0, "start", "load", "--id", "g-1", "--input", `{"steps":1,"signals":2}`)
	c.exits(0, "signal", "g-1", "poke", "--input", `{"n":1}`)
	c.prints("^signaled g-1 with poke$")
	for _, patience := range []string{"1s", "8s", "60s"} { // of a busy machine no answer at all may come in time
		if c.exits(4, "result", "g-1", "--timeout", patience); strings.Contains(c.last.Stderr, "had not ended") {
			break
		}
	}
	c.complains("had not ended")
	c.publish("drover.default.signal.g-1.poke", "2")
	c.exits(0, "result", "g-1", "--timeout", "60s")
	c.prints(`^"1;"$`)
	c.exits(0, "history", "g-1", "--json")
	c.lines(2, `"type":"Signal"`)
	// Too late, and to nobody: refused, or kept as dead letters.
	c.exits(1, "signal", "g-1", "poke")
	c.complains(`workflow "g-1" is closed \(completed\)`)
	c.exits(1, "signal", "g-nobody", "poke")
	c.complains(`there is no workflow with the id "g-nobody": it was never started, or is purged`)
	c.publish("drover.default.signal.g-2.early", "1")
	c.letter("unknown-workflow", storedSignal("g-2", "early"))
	c.exits(2, "signal", "g-1")
	c.complains("NAME is missing")
}

func cliLook(c *commandLine) {
	// Why and describe tell what a run waits for.
	c.exits(0, "start", "lonely", "--id", "l-1", "--tag", "red", "--attribute", "k=v")
	c.exits(0, "why", "l-1")
	c.prints(`a decider of type "lonely"|no decider for type "lonely" is listening`)
	c.exits(0, "describe", "l-1")
	c.prints("status +open")
	c.prints("type +lonely")
	c.exits(0, "pause", "l-1", "--reason", "to look at it")
	c.exits(0, "why", "l-1")
	c.prints(`it is paused \(to look at it\); go on with: drover resume l-1`)
	c.exits(0, "resume", "l-1")
	c.exits(0, "history", "l-1", "--json")
	c.prints(`"type":"WorkflowPaused"`)
	c.prints(`"type":"WorkflowResumed"`)
	// List: people, programs, filters.
	c.exits(0, "start", "order", "--id", "l-2", "--wait", "--timeout", "60s")
	c.exits(0, "list", "--prefix", "l-")
	c.prints("^ID +RUN +TYPE +STATUS ")
	c.prints("^l-1 +[0-9A-Z]+ +lonely +open ")
	c.prints("^l-2 +[0-9A-Z]+ +order +completed ")
	c.exits(0, "list", "--prefix", "l-", "--status", "completed", "--json")
	c.lines(1, `"workflowId":`)
	c.prints(`"workflowId":"l-2"`)
	c.exits(0, "list", "--type", "nothing-of-this-type")
	c.complains("^no workflows$")
	c.exits(2, "list", "--status", "done")
	// Dead: what could not be applied.
	subj := fmt.Sprintf("drover.default.in.%d.l-1.nonsense", subject.Partition("l-1", 4))
	c.publish(subj, "{}")
	c.letter("undecodable", subj)
	c.exits(0, "dead", "--reason", "undecodable", "--json")
	c.lines(1, regexp.QuoteMeta(`"subject":"`+subj+`"`))
	c.prints("are not known")
	c.exits(0, "dead", "--reason", "no-such-reason")
	c.silent()
	c.exits(2, "frobnicate")
	c.exits(2, "why", "l-1", "--log-level", "loud")
	c.exits(0, "verify")
	c.prints("no rule is broken$")
	c.exits(1, "verify", "--namespace", "nowhere")
	c.complains(`there is no namespace "nowhere"`)
	c.exits(0, "version")
	c.prints("^drover .* protocol 1")
}
