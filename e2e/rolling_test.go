package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/schemas"
)

// Every role is there twice, and a whole server besides. Under load each process is stopped as planned and started again, one
// after the other: nothing is lost, nothing is done twice, no call fails.
func TestS2_02RollingRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bareNATS()
	n := newNotes(w)
	beside := func(name, roles string) func() *process {
		return func() *process { return w.beside(name, roles, "--partitions", fmt.Sprint(partitions)) }
	}
	members := []struct {
		name  string
		start func() *process
	}{
		{"broker one", beside("one", "broker")},
		{"broker two", beside("two", "broker")},
		{"timers three", beside("three", "timers")},
		{"timers four", beside("four", "timers")},
		{"server five", beside("five", "broker,timers,ops")},
		{"decider six", func() *process { return n.decider(w) }},
		{"decider seven", func() *process { return n.decider(w) }},
		{"worker eight", func() *process { return n.worker(w) }},
		{"worker nine", func() *process { return n.worker(w) }},
	}
	fleet := make([]*process, len(members))
	for i, m := range members {
		fleet[i] = m.start()
	}
	f := newTraffic(w, partitions, 100*time.Millisecond, load.Input{Steps: 2}, load.Input{Steps: 1, Timer: 200}, load.Input{Steps: 2, Once: true}, load.Input{Steps: 1, Timer: 50, Once: true})
	for i, m := range members {
		wait(t.Context(), 500*time.Millisecond)
		stopped := time.Now()
		fleet[i].Stop(patience)
		took := time.Since(stopped)
		fleet[i] = m.start()
		t.Logf("%s ended after %v and was back after %v", m.name, took.Round(time.Millisecond), time.Since(stopped).Round(time.Millisecond))
	}
	wait(t.Context(), 3*time.Second) // the brokers that are back get their share again
	f.end(n)
	slow, _ := f.slowest(time.Time{}, time.Now())
	t.Logf("slowest call: %v (%s)", slow.took.Round(time.Millisecond), slow.verb)
	for _, p := range fleet {
		p.Alive()
	}
}

// slowly is a micro service that answers each request after the time that it names, but answers the second one for the same
// activity at once, and the decider of workflows that call it.
func slowly(w *world) {
	w.t.Helper()
	nc := w.plain()
	seen := map[string]bool{}
	sub, err := nc.Subscribe("slowly", func(m *nats.Msg) {
		var takes float64
		key := m.Header.Get("Idempotency-Key")
		if err := json.Unmarshal(m.Data, &takes); err != nil || key == "" {
			w.t.Errorf("got %s for the activity %q", m.Data, key)
		}
		if seen[key] {
			takes = 0
		}
		seen[key] = true
		time.AfterFunc(time.Duration(takes*float64(time.Second)), func() { _ = m.Respond([]byte(`"done"`)) }) // who asked may be gone
	})
	if err == nil {
		err = sub.SetPendingLimits(-1, -1)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	deciders := w.client.Deciders(nil)
	deciders.Register("call", decider.Func(func(ctx context.Context, task *decider.Task) ([]schemas.Decision, error) {
		v, err := task.View(ctx)
		if err != nil {
			return nil, err
		}
		switch status, out, reason := v.Activity("call"); {
		case status == 0:
			in := map[string]any{"subject": "slowly", "body": json.RawMessage(v.Input()), "timeout": "10m"}
			return []schemas.Decision{decider.Schedule("call", "request", in, decider.List("calls"), decider.StartToClose(drover.Unlimited))}, nil
		case status == decider.ActivitySucceeded:
			return []schemas.Decision{decider.Complete(out)}, nil
		case status.Closed():
			return []schemas.Decision{decider.Fail(reason, nil)}, nil
		}
		return nil, nil
	}))
	w.t.Cleanup(w.background(deciders.Run)) // before the client is closed
}

// A worker that is told to stop finishes what runs, up to its limit, and reports it; beyond the limit the task goes to another
// worker and the process ends all the same. A second signal cuts the stop short.
func TestS2_01PlannedStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.embedded("--profile", "dev")
	slowly(w)
	begin := func(w *world, id string, takes float64, flags ...string) (*process, *drover.Run) {
		w.t.Helper()
		args := append([]string{"worker", "--nats", w.url, "--list", "calls", "--kinds", "request", "--json"}, flags...)
		p := spawn(w.t, w.dir, "worker", exec.Command(binary, args...))
		p.Ready(patience, nil)
		run := w.start("call", id, takes, startOptions{})
		w.has(run, schemas.EventActivityStarted)
		return p, run
	}
	t.Run("what runs ends", func(t *testing.T) {
		w := w.in(t)
		p, run := begin(w, "ends", 3)
		p.Stop(patience)
		w.completes(run, `"done"`)
		if starts := strings.Count(notation(w.events(run)), "ActivityStarted"); starts != 1 {
			t.Fatalf("the activity was started %d times, want once", starts)
		}
	})
	t.Run("beyond the limit it is handed back", func(t *testing.T) {
		w := w.in(t)
		p, run := begin(w, "late", 600, "--drain-timeout", "1s")
		p.Signal(syscall.SIGTERM)
		if code := p.Ends(patience); code != 1 {
			t.Fatalf("got exit code %d, want 1: it has handed a task back", code)
		}
		heir := spawn(t, w.dir, "heir", exec.Command(binary, "worker", "--nats", w.url, "--list", "calls", "--kinds", "request"))
		w.completes(run, `"done"`)
		if !strings.Contains(notation(w.events(run)), "ActivityStarted call attempt 2") {
			t.Fatalf("got no second attempt:\n%s", notation(w.events(run)))
		}
		heir.Stop(patience)
	})
	t.Run("a second signal cuts it short", func(t *testing.T) {
		w := w.in(t)
		p, _ := begin(w, "cut", 600)
		p.Signal(syscall.SIGTERM)
		wait(t.Context(), time.Second) // two signals at once are one
		select {
		case <-p.Ended:
			t.Fatalf("it has ended with %v, want that it waits for what runs", p.Err)
		default:
		}
		p.Signal(syscall.SIGTERM)
		if code := p.Ends(patience); code != 1 {
			t.Fatalf("got exit code %d, want 1", code)
		}
	})
	w.verify()
}
