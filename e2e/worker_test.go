package e2e

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/schemas"
)

// The strangers are strangers: they know the standard library and nats.go.
func TestStrangersKnowNothingOfOurs(t *testing.T) {
	files, err := filepath.Glob("stranger/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v, want the strangers' files", files, err)
	}
	allowed := []string{"github.com/nats-io/nats.go", "github.com/nats-io/nats.go/jetstream"}
	speaksJSON := false
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s: a stranger has the standard library and %v", name, path, allowed)
			}
			speaksJSON = speaksJSON || path == "encoding/json"
		}
	}
	if !speaksJSON {
		t.Error("no stranger imports encoding/json")
	}
}

// A worker in JSON: pull, run, publish, ack; and the question before a task that must not run twice.
func TestStrangerWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	puppet := w.role("puppet-decider", "order")
	worker := w.role("stranger-worker", "work")
	run := w.start("order", "o", nil, startOptions{})
	n, task := w.task(puppet)
	w.decide(puppet, n, task, strings.Replace(schedule("A"), `"list"`, `"input":{"from":"o"},"list"`, 1))
	n, task = w.task(puppet)
	w.decide(puppet, n, task, scheduleOnce("B"))
	granted := untilOf(worker, func(l stranger.Line) bool { return l.Permission != nil })
	var p schemas.Permission
	if err := json.Unmarshal(granted.Permission, &p); err != nil || !p.Go || p.Attempt != 1 {
		t.Fatalf("got %s, %v, want go for attempt 1", granted.Permission, err)
	}
	untilOf(worker, func(l stranger.Line) bool { return l.N == granted.N && l.Acked })
	n, task = w.task(puppet)
	w.decide(puppet, n, task, completeDecision)
	w.completes(run, `"done"`)
	w.is(run, `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderCompleted
ActivityScheduled A
ActivityStarted A
ActivitySuccess A
DeciderScheduled
DeciderStarted
DeciderCompleted
ActivityScheduled B
ActivityStarted B
ActivitySuccess B
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`)
	success, ok := w.events(run)[6].Attributes.(*schemas.ActivitySuccess)
	if want := `{"attempt":1,"input":{"from":"o"}}`; !ok || string(success.Result) != want {
		t.Fatalf("got %s, want %s", success.Result, want)
	}
	w.verify()
}

// A worker is killed with a task in hand. The server delivers it to another, which asks first: an idempotent activity
// gets attempt 2, any other fails as interrupted and is dropped.
func TestWorkerDies(t *testing.T) {
	t.Parallel()
	const before = `
WorkflowStarted
DeciderScheduled
DeciderStarted
DeciderCompleted
ActivityScheduled A
ActivityStarted A
ActivityInterrupted A
`
	for _, tt := range []struct {
		name     string
		decision string
		begin    func(h *hand) // how the first worker makes its start known
		goes     bool
		want     string
	}{
		{"idempotent", schedule("A"), func(h *hand) { h.reports("A", "started") }, true, before + `ActivityStarted A attempt 2
ActivitySuccess A
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`},
		{"not idempotent", scheduleOnce("A"), func(h *hand) {
			n := h.takes("A").line.N
			h.order(stranger.Line{N: n, Do: "begin"})
			if l := h.answer(n); !strings.Contains(string(l.Permission), `"go":true`) {
				h.t.Fatalf("got %s, want go", l.Permission)
			}
		}, false, before + `ActivityFailed A interrupted
DeciderScheduled
DeciderStarted
DeciderCompleted
WorkflowSuccess`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.embedded("--profile", "dev")
			puppet := w.role("puppet-decider", "order")
			victim := w.hand("work")
			run := w.start("order", "o", nil, startOptions{DecisionTimeout: time.Hour})
			n, task := w.task(puppet)
			w.decide(puppet, n, task, tt.decision)
			tt.begin(victim)
			w.until(run, 6, schemas.EventActivityStarted)
			victim.Kill()

			heir := w.role("stranger-worker", "work")
			got := untilOf(heir, func(l stranger.Line) bool { return l.Task != nil })
			if !got.Redelivered {
				t.Fatalf("got %+v, want a redelivery", got)
			}
			answer := untilOf(heir, func(l stranger.Line) bool { return l.Permission != nil })
			if want := fmt.Sprintf(`"go":%v`, tt.goes); !strings.Contains(string(answer.Permission), want) {
				t.Fatalf("got %s, want %s", answer.Permission, want)
			}
			untilOf(heir, func(l stranger.Line) bool { return l.Acked })
			n, task = w.task(puppet)
			w.decide(puppet, n, task, completeDecision)
			w.completes(run, `"done"`)
			w.is(run, tt.want)
			w.verify()
		})
	}
}
