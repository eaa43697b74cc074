package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

var alwaysKills = flag.Int("always-kills", 0, "kills of each kind of process in TestAlwaysOnAfterKills; how soon the workflow is back is asserted when it is given (default 2, and it only has to be back)")

const alwaysType = "always"

// alwaysRole decides for a workflow that runs until the signal end.
func alwaysRole(ctx context.Context) error {
	c, err := connectRole(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	w := c.Deciders(nil)
	w.Register(alwaysType, decider.Func(func(_ context.Context, task *decider.Task) ([]schemas.Decision, error) {
		for _, e := range task.Events() {
			if e.Type() == schemas.EventSignal {
				return []schemas.Decision{schemas.Decide(&schemas.CompleteWorkflow{})}, nil
			}
		}
		return nil, nil
	}))
	return w.Run(ctx)
}

// always is a world with an always-on workflow.
type always struct {
	*world
	mu   sync.Mutex
	took map[string][]time.Duration // from an end to the next start, by the process that was killed
}

const alwaysID = "keeper"

func (w *world) always() *always {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	start := schemas.StartRequest{WorkflowID: alwaysID, Type: alwaysType}
	if _, err := w.client.AddAlwaysOn(ctx, ops.AlwaysOn{Start: start}); err != nil {
		w.t.Fatal(err)
	}
	return &always{world: w, took: map[string][]time.Duration{}}
}

// open waits for a run that is open and is not the last one.
func (a *always) open(last string) (run string) {
	a.t.Helper()
	ctx, cancel := a.bounded()
	defer cancel()
	poll.Until(a.t, patience, "a run is open", func() bool {
		d, err := a.client.Run(alwaysID, "").Describe(ctx)
		if err != nil && !errors.Is(err, drover.ErrNotFound) {
			a.t.Fatal(err)
		}
		if err != nil || d.Execution.Status.Closed() || d.Execution.Run == last {
			return false
		}
		run = d.Execution.Run
		return true
	})
	return run
}

// round kills a process while the run is about to end, brings it back, and waits for the next run.
func (a *always) round(kind string, n int, kill func(), back func()) {
	a.t.Helper()
	run := a.open("")
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := a.bounded()
		defer cancel()
		ended <- a.client.Run(alwaysID, run).Signal(ctx, "end", nil)
	}()
	wait(a.t.Context(), time.Duration(n%5)*3*time.Millisecond)
	kill()
	back()
	if err := <-ended; err != nil {
		a.t.Fatal(err)
	}
	next := a.open(run)
	first, last := a.events(a.client.Run(alwaysID, next)), a.events(a.client.Run(alwaysID, run))
	took := first[0].Time.Sub(last[len(last)-1].Time)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took[kind] = append(a.took[kind], took)
}

// within reports how soon it was back, and demands it if the flag is given.
func (a *always) within(kind string, limit time.Duration) {
	a.t.Helper()
	took := a.took[kind]
	slices.Sort(took)
	a.t.Logf("%d kills of a %s: back after %v, median %v, at most %v", len(took), kind, took[0].Round(time.Millisecond),
		took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	if *alwaysKills > 0 && took[len(took)-1] > limit {
		a.t.Errorf("slowest after the kill of a %s: %v, want at most %v", kind, took[len(took)-1], limit)
	}
}

// alone demands of the history of the only partition that no run of the workflow began while another was open.
func (a *always) alone(runs int) {
	a.t.Helper()
	ctx, cancel := a.bounded()
	defer cancel()
	open, begun := "", 0
	err := natsconn.Of(a.client).Scan(ctx, namespace.StreamHistory(0), natsconn.ReadOptions{FilterSubjects: []string{namespace.HistoryOfWorkflow(0, alwaysID)}}, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		for _, e := range r.Events {
			switch _, closes := schemas.StatusOf(e.Type()); {
			case e.Type() == schemas.EventWorkflowStarted:
				if open != "" {
					a.t.Errorf("run %s began while run %s was open", r.Run, open)
				}
				open, begun = r.Run, begun+1
			case closes:
				open = ""
			}
		}
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	if begun != runs {
		a.t.Errorf("%d runs have begun, want %d", begun, runs)
	}
}

// S2-3: worker, broker, master and server are killed with -9 while a run of an always-on workflow ends. There are never two
// runs, and there is one again: within a second while the master lives, else within the TTL of its claim and five seconds.
func TestAlwaysOnAfterKills(t *testing.T) {
	kills := 2
	if *alwaysKills > 0 {
		kills = *alwaysKills
	}
	t.Run("roles", func(t *testing.T) {
		w := newWorld(t)
		w.bareNATS()
		flags := []string{"--claim-ttl", shortTTL.String(), "--partitions", "1"}
		nodes := map[string]*process{}
		begin := func(name, roles string) { nodes[name] = w.beside(name, roles, flags...) }
		for name, roles := range map[string]string{"one": "broker", "two": "broker", "timers": "timers", "left": "ops", "right": "ops"} {
			begin(name, roles)
		}
		worker := w.role("always-decider", alwaysType)
		a := w.always()
		for n := range kills {
			a.round("worker", n, func() { worker.Kill() }, func() { worker = w.role("always-decider", alwaysType) })
		}
		for n := range kills {
			name := a.holder(claims.Partition(0))
			a.round("broker", n, func() { nodes[name].Kill() }, func() {})
			begin(name, "broker")
		}
		for n := range kills {
			name := a.holder(claims.Master)
			a.round("master", n, func() { nodes[name].Kill() }, func() {})
			begin(name, "ops")
		}
		a.within("worker", time.Second)
		a.within("broker", time.Second)
		a.within("master", shortTTL+5*time.Second)
		a.alone(3*kills + 1)
	})
	t.Run("server", func(t *testing.T) {
		w := newWorld(t)
		flags := []string{"--profile", "dev", "--partitions", "1", "--claim-ttl", shortTTL.String()}
		server := w.embedded(flags...)
		w.role("always-decider", alwaysType)
		a := w.always()
		for n := range kills {
			a.round("server", n, func() { server.Kill() }, func() { server = w.embedded(flags...) })
		}
		a.within("server", shortTTL+5*time.Second)
		a.alone(kills + 1)
	})
}

// holder waits until a claim is held, and says by which node.
func (a *always) holder(key string) (node string) {
	a.t.Helper()
	ctx, cancel := a.bounded()
	defer cancel()
	observer, err := claims.Open(natsconn.Of(a.client), namespace.BucketClaims(), claims.Options{Node: "observer"})
	if err != nil {
		a.t.Fatal(err)
	}
	poll.Until(a.t, patience, fmt.Sprintf("somebody holds %s", key), func() bool {
		held, err := observer.List(ctx)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, h := range held {
			if h.Key == key && !h.Expired {
				node = h.Node
			}
		}
		return node != ""
	})
	return node
}
