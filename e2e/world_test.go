package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/e2e/kit"
	"github.com/droverhq/drover/e2e/stranger"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
)

const namespace = subject.Namespace("default")

// world is one NATS address and what runs around it. Servers come and go, the address stays.
type world struct {
	t      *testing.T
	dir    string
	port   int
	url    string
	client *drover.Client // once something has listened
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: folder(t), port: kit.FreePort(t)}
	w.url = fmt.Sprintf("nats://127.0.0.1:%d", w.port)
	return w
}

// in is the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	c := *w
	c.t = t
	return &c
}

// serve starts the binary as a server and waits for its ready line.
func (w *world) serve(name string, flags ...string) *process {
	w.t.Helper()
	p := spawn(w.t, w.dir, name, exec.Command(binary, append([]string{"server", "--json"}, flags...)...))
	p.Ready(patience, nil)
	w.connect()
	return p
}

// embedded starts a server of its own on the world's address, with a store that outlives it.
func (w *world) embedded(flags ...string) *process {
	w.t.Helper()
	return w.serve("server", append([]string{"--store", filepath.Join(w.dir, "store"), "--port", fmt.Sprint(w.port)}, flags...)...)
}

// beside starts roles of the binary beside the NATS server of the world.
func (w *world) beside(name, roles string, flags ...string) *process {
	w.t.Helper()
	return w.serve(name, append([]string{"--nats", w.url, "--roles", roles, "--node", name}, flags...)...)
}

// bareNATS starts a NATS server that knows nothing of Drover.
func (w *world) bareNATS() *process {
	w.t.Helper()
	p := asRole(w.t, w.dir, "nats", map[string]string{envURL: w.url, envDir: filepath.Join(w.dir, "store")})
	if line := p.Line(patience); line != "ready" {
		w.t.Fatalf("nats: got %q, want ready", line)
	}
	w.connect()
	return p
}

// role starts a worker of the world: a type of workflow, or a task list.
func (w *world) role(role, name string) *process {
	w.t.Helper()
	return asRole(w.t, w.dir, role, map[string]string{envURL: w.url, envName: name})
}

func (w *world) connect() {
	w.t.Helper()
	if w.client != nil {
		return
	}
	c, err := drover.Connect(w.t.Context(), &drover.Options{URL: w.url, Timeout: patience, Name: "e2e"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	w.client = c
}

// plain is a connection as a stranger would make it.
func (w *world) plain() *nats.Conn {
	w.t.Helper()
	nc, err := nats.Connect(w.url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(nc.Close)
	return nc
}

func (w *world) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.t.Context(), patience)
}

func (w *world) start(typ, id string, input any, o drover.StartOptions) *drover.Run {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	o.ID = id
	run, err := w.client.Start(ctx, typ, input, &o)
	if err != nil {
		w.t.Fatal(err)
	}
	return run
}

// ends waits for the end of a run.
func (w *world) ends(run *drover.Run) *drover.Outcome {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	o, err := run.Wait(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// completes waits for the end of a run and demands its result.
func (w *world) completes(run *drover.Run, want string) {
	w.t.Helper()
	if o := w.ends(run); o.Status != schemas.StatusCompleted || string(o.Result) != want {
		w.t.Fatalf("%s: got %s %q %s, want completed %q", run.ID, o.Status, o.Result, o.Reason, want)
	}
}

// events reads the history that there is.
func (w *world) events(run *drover.Run) []schemas.Event {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	var all []schemas.Event
	for e, err := range run.History(ctx, drover.HistoryOptions{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// exists waits until a workflow is known: of one whose start nobody has acknowledged.
func (w *world) exists(run *drover.Run) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	poll.Until(w.t, patience, run.ID+" is known", func() bool {
		_, err := run.Describe(ctx)
		if err != nil && !errors.Is(err, drover.ErrNotFound) {
			w.t.Fatal(err)
		}
		return err == nil
	})
}

// until follows a history up to its event n and demands its type.
func (w *world) until(run *drover.Run, n int64, want schemas.EventType) schemas.Event {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	for e, err := range run.History(ctx, drover.HistoryOptions{After: n - 1, Follow: true}) {
		if err != nil {
			w.t.Fatalf("waiting for event %d %s: %v; the history is\n%s", n, want, err, notation(w.events(run)))
		}
		if e.ID != n || e.Type() != want {
			w.t.Fatalf("got event %d %s, want %d %s; the history is\n%s", e.ID, e.Type(), n, want, notation(w.events(run)))
		}
		return e
	}
	w.t.Fatalf("the history ends before its event %d %s:\n%s", n, want, notation(w.events(run)))
	return schemas.Event{}
}

// has follows a history until it has an event of a type.
func (w *world) has(run *drover.Run, want schemas.EventType) schemas.Event {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	for e, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			w.t.Fatalf("waiting for %s: %v; the history is\n%s", want, err, notation(w.events(run)))
		}
		if e.Type() == want {
			return e
		}
	}
	w.t.Fatalf("the history ends without %s:\n%s", want, notation(w.events(run)))
	return schemas.Event{}
}

// is demands a history event for event, in the words of notation.
func (w *world) is(run *drover.Run, want string) {
	w.t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), notation(w.events(run))); diff != "" {
		w.t.Fatalf("history of %s (-want +got):\n%s", run.ID, diff)
	}
}

// notation writes events one a line: the type, and the name of the activity or signal that it is about.
func notation(events []schemas.Event) string {
	names := map[int64]string{}
	var lines []string
	for _, e := range events {
		name := ""
		switch a := e.Attributes.(type) {
		case *schemas.ActivityScheduled:
			name = a.ActivityID
			names[e.ID] = name
		case *schemas.ActivityStarted:
			name = names[a.ScheduledEventID]
			if a.Attempt > 1 {
				name += fmt.Sprintf(" attempt %d", a.Attempt)
			}
		case *schemas.ActivitySuccess:
			name = names[a.ScheduledEventID]
		case *schemas.ActivityFailed:
			name = names[a.ScheduledEventID] + " " + a.Reason
		case *schemas.ActivityInterrupted:
			name = names[a.ScheduledEventID]
		case *schemas.ActivityScheduleFailed:
			name = a.ActivityID + " " + string(a.Cause)
		case *schemas.TimerScheduled:
			name = a.TimerID
		case *schemas.TimerScheduleFailed:
			name = a.TimerID + " " + string(a.Cause)
		case *schemas.DeciderFailed:
			name = string(a.Cause)
		case *schemas.Signal:
			name = a.SignalName
		case *schemas.DeciderTimedOut:
			name = string(a.TimeoutType)
		}
		lines = append(lines, strings.TrimSpace(string(e.Type())+" "+name))
	}
	return strings.Join(lines, "\n")
}

// deaf waits until nobody listens for tasks of a type: the server notices a killed process a moment later.
func (w *world) deaf(typ string) {
	w.t.Helper()
	nc := w.plain()
	poll.Until(w.t, patience, "nobody listens for "+typ, func() bool {
		_, err := nc.Request(namespace.Decide(typ), []byte("{}"), 100*time.Millisecond)
		return errors.Is(err, nats.ErrNoResponders)
	})
}

// task waits for the next task of a puppet decider.
func (w *world) task(p *process) (n int, task schemas.DecisionTask) {
	w.t.Helper()
	l := p.next()
	if l.Task == nil {
		w.t.Fatalf("%s: got %+v, want a task", p.Name, l)
	}
	if err := json.Unmarshal(l.Task, &task); err != nil {
		w.t.Fatal(err)
	}
	return l.N, task
}

// decide lets a puppet answer task n.
func (w *world) decide(p *process, n int, task schemas.DecisionTask, decisions string) {
	w.t.Helper()
	p.order(stranger.Line{N: n, Reply: fmt.Appendf(nil, `{"token":%q,"decisions":[%s]}`, task.Token, decisions)})
}

const completeDecision = `{"type":"CompleteWorkflow","attributes":{"result":"done"}}`

type startOptions = drover.StartOptions

// answerAll lets a puppet complete whatever it is asked, until run has ended. The first answers may be late.
func answerAll(w *world, puppet *process, run *drover.Run) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = run.Wait(w.t.Context()) // the test itself looks at the result
	}()
	for {
		select {
		case text, ok := <-puppet.Lines:
			var l struct {
				N    int                  `json:"n"`
				Task schemas.DecisionTask `json:"task"`
			}
			if err := json.Unmarshal([]byte(text), &l); !ok || err != nil {
				w.t.Fatalf("puppet: got %q: %v", text, err)
			}
			w.decide(puppet, l.N, l.Task, completeDecision)
		case <-closed:
			return
		}
	}
}

// count counts the events of a type in all runs of a workflow id.
func (w *world) count(id string, typ schemas.EventType) (n int) {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	for x, err := range w.client.List(ctx, drover.ListOptions{WorkflowID: id}) {
		if err != nil {
			w.t.Fatal(err)
		}
		for _, e := range w.events(w.client.Run(id, x.Run)) {
			if e.Type() == typ {
				n++
			}
		}
	}
	return n
}

// tenant is the world as a client of another namespace sees it.
func (w *world) tenant(ns string) *world {
	w.t.Helper()
	c, err := drover.Connect(w.t.Context(), &drover.Options{URL: w.url, Namespace: ns, Timeout: patience, Name: "e2e"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	other := w.in(w.t)
	other.client = c
	return other
}

// background runs a worker in this process until it is stopped, which it must survive. Outcomes that nobody takes any
// more, of a namespace that was deleted, may keep it from ending by itself.
func (w *world) background(run func(context.Context) error) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, activity.ErrDrainTimeout) {
			w.t.Errorf("worker: %v", err)
		}
	}
}
