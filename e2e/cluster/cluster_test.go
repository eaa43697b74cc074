package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/schemas"
)

const (
	lanes = 8
	// some is how many workflows end before, between and after faults.
	some = 24
	// failFast is the longest that a call may take on a node without quorum, with the time in which the loss is noticed.
	failFast = 10 * time.Second
)

// The node that leads most streams is killed under load: callers wait for an election and lose nothing.
func TestMajorityServes(t *testing.T) {
	f := begin(t)
	for range *rounds {
		l := f.press(t, lanes)
		l.reach(some)
		before := l.wait()
		victim, led := f.busiest(t)
		f.kill(t, victim)
		l.reach(some)
		t.Logf("n%d led %d streams; the slowest call took %v before it was killed, %v after", victim, led, before, l.wait())
		f.restart(t, victim)
		l.reach(some)
		l.end()
	}
}

// Every stream gets another leader, again and again, and the cluster itself.
func TestLeaderStepDown(t *testing.T) {
	f := begin(t)
	nc, js := f.jetstream(t)
	l := f.press(t, lanes)
	l.reach(some)
	before, downs := l.wait(), 0
	for range 2 * *rounds {
		all, err := streams(t.Context(), js)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if stepDown(nc, "$JS.API.STREAM.LEADER.STEPDOWN."+s.Config.Name) {
				downs++
			}
		}
		if stepDown(nc, "$JS.API.META.LEADER.STEPDOWN") {
			downs++
		}
		l.reach(some)
	}
	if downs == 0 {
		t.Fatal("no leader has stepped down")
	}
	t.Logf("%d leaders have stepped down; the slowest call took %v before, %v meanwhile", downs, before, l.wait())
	l.end()
}

// stepDown tells whether a leader has stepped down. One whose election is under way cannot.
func stepDown(nc *nats.Conn, subject string) bool {
	m, err := nc.Request(subject, nil, 2*time.Second)
	var answer struct {
		Success bool `json:"success"`
	}
	return err == nil && json.Unmarshal(m.Data, &answer) == nil && answer.Success
}

// Each node in turn is stopped and started again, under load.
func TestRollingRestart(t *testing.T) {
	f := begin(t)
	l := f.press(t, lanes)
	l.reach(some)
	before := l.wait()
	for range *rounds {
		for i := 1; i <= size; i++ {
			f.stop(t, i)
			f.restart(t, i)
			f.whole(t)
			l.reach(some / 2)
		}
	}
	t.Logf("the slowest call took %v before, %v meanwhile", before, l.wait())
	l.end()
}

// Two nodes are killed: the last one refuses everything soon, and says why. When one of the two is back, all goes on, and what
// was refused is there once or not at all.
func TestMinorityRefuses(t *testing.T) {
	f := begin(t)
	survivor, _ := f.busiest(t)
	rest := others(survivor)
	all := connect(t, f.urls(), patience)
	workers(t, all)
	lone := connect(t, f.urls(survivor), 0)
	open := startHeld(t, lone, "held-"+t.Name())

	waited := make(chan error, 1)
	waits := time.Now()
	go func() { _, err := open.Wait(t.Context()); waited <- err }()
	for _, i := range rest {
		f.kill(t, i)
	}
	refusals(t, lone, open)
	if err := <-waited; !refused(err) {
		t.Errorf("result, asked before the loss: got %v, want it refused", err)
	}
	t.Logf("a wait for a result that began before the loss was refused after %v", time.Since(waits).Round(time.Millisecond))

	healed := time.Now()
	f.restart(t, rest[0])
	goOn(t, all, open)
	t.Logf("a node was started again, and after %v what was refused is done", time.Since(healed).Round(time.Millisecond))
	f.restart(t, rest[1])
	f.whole(t)
	f.verify(t)
}

// The cable of the node that leads most streams is pulled: that node refuses, the others serve; then it is plugged in.
func TestPartition(t *testing.T) {
	f := begin(t)
	if !f.net.apart() {
		t.Skip("network namespaces need root")
	}
	for range *rounds {
		alone, led := f.busiest(t)
		l := f.press(t, lanes, others(alone)...)
		l.reach(some)
		before := l.wait()
		if err := f.net.cut(alone); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		cmd := f.net.in(alone, binary, "start", orderType, "--id", "alone-"+fmt.Sprint(began.UnixNano()), "--json", "--nats", f.nodes[alone].url())
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "no quorum: this node sees 1 of 3 servers") || took > failFast+2*time.Second {
			t.Errorf("a start on the lone node: got %v after %v, %s, want exit code 3 for want of a quorum within %v", err, took, out, failFast+2*time.Second)
		}
		l.reach(some)
		slowest := l.wait()
		if err := f.net.mend(alone); err != nil {
			t.Fatal(err)
		}
		off := time.Since(began)
		l.reach(some)
		t.Logf("n%d led %d streams and was cut off for %v; it refused after %v; the slowest call on the others took %v before, %v after the cut",
			alone, led, off.Round(time.Millisecond), took.Round(time.Millisecond), before, slowest)
		l.end()
	}
}

// startHeld starts a workflow that waits for a signal, and waits until its first activity is done: a stream of a task list that is
// being made when the quorum is lost may stay without a leader (docs/learn/reliability.md).
func startHeld(t *testing.T, c *drover.Client, id string) *drover.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := c.Start(ctx, orderType, orderValue, &drover.StartOptions{ID: fmt.Sprintf("%s-%d", id, time.Now().UnixNano())})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			t.Fatalf("the first activity of %s: %v", run.ID, err)
		}
		if e.Type() == schemas.EventActivitySuccess {
			break
		}
	}
	return run
}

// calls are made on a node that has lost its quorum. Writes carry a request id, so that they can be repeated.
func calls(c *drover.Client, open *drover.Run) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"start": func(ctx context.Context) error {
			_, err := c.Start(ctx, orderType, orderValue, &drover.StartOptions{ID: "refused-" + open.ID, RequestID: "start-" + open.ID})
			return err
		},
		"signal": func(ctx context.Context) error {
			return open.Signal(ctx, "other", "once")
		},
		"describe": func(ctx context.Context) error { _, err := open.Describe(ctx); return err },
		"result":   func(ctx context.Context) error { _, err := open.Wait(ctx); return err },
		"cancel":   func(ctx context.Context) error { return open.Cancel(ctx, "no more of it") },
		"list": func(ctx context.Context) error {
			for _, err := range c.List(ctx, drover.ListOptions{}) {
				return err
			}
			return nil
		},
	}
}

// reads may be answered until the loss is noticed: what they show is stored, and nobody else can own the partition yet.
var reads = []string{"describe", "list"}

// refusals makes every call at once, from the moment of the loss on, and again when it is known.
func refusals(t *testing.T, c *drover.Client, open *drover.Run) {
	t.Helper()
	for _, when := range []string{"at the loss", "later"} {
		var mu sync.Mutex
		var slowest time.Duration
		var wg sync.WaitGroup
		for name, call := range calls(c, open) {
			wg.Go(func() {
				began := time.Now()
				err := call(t.Context())
				for err == nil && when == "at the loss" && slices.Contains(reads, name) && time.Since(began) < failFast {
					<-time.After(50 * time.Millisecond)
					err = call(t.Context())
				}
				took := time.Since(began)
				if !refused(err) || took > failFast {
					t.Errorf("%s, %s: got %v after %v, want it refused for want of a quorum within %v", name, when, err, took, failFast)
				}
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, took)
			})
		}
		wg.Wait()
		t.Logf("%s: the slowest of %d calls was refused after %v", when, len(calls(c, open)), slowest.Round(time.Millisecond))
	}
}

// goOn repeats what was refused, with its request ids, and finishes the workflow that waited.
func goOn(t *testing.T, c *drover.Client, open *drover.Run) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again, err := c.Start(ctx, orderType, orderValue, &drover.StartOptions{ID: "refused-" + open.ID, RequestID: "start-" + open.ID})
	if err != nil {
		t.Fatalf("the start that was refused, again: %v", err)
	}
	held, err := c.Run(open.ID, "").Describe(ctx)
	if err != nil || held.Execution.Run != open.RunID {
		t.Fatalf("%s: got %+v, %v, want run %s, which was acknowledged", open.ID, held, err, open.RunID)
	}
	for _, id := range []string{open.ID, again.ID} {
		run := c.Run(id, "")
		if err := run.Signal(ctx, goSignal, "go"); err != nil {
			t.Fatalf("signal %s: %v", id, err)
		}
		o, err := run.Wait(ctx)
		if err != nil || o.Status != schemas.StatusCompleted {
			t.Fatalf("%s: got %+v, %v, want it completed", id, o, err)
		}
		signals, canceled := map[string]int{}, 0
		for e := range events(t, run) {
			switch a := e.Attributes.(type) {
			case *schemas.Signal:
				signals[a.SignalName]++
			case *schemas.WorkflowCancelRequested:
				canceled++
			}
		}
		if signals["other"] > 1 || signals[goSignal] != 1 || canceled > 1 {
			t.Errorf("%s: got signals %v and %d requests to cancel, want each at most once, and go once", id, signals, canceled)
		}
	}
	if _, err := c.Run("never-"+open.ID, "").Describe(ctx); !errors.Is(err, drover.ErrNotFound) {
		t.Fatalf("got %v, want that an unknown workflow is not found", err)
	}
}
