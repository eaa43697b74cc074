package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// troupe is a load of workflows that have to do with one another.
type troupe struct {
	*pressure
	nc *nats.Conn
	// parents are runs whose children are counted at the end, chains workflow ids with one cancel request each.
	mu      sync.Mutex
	parents []*drover.Run
	chains  []string
}

// open starts a play and counts it as acknowledged.
func (tr *troupe) open(ctx context.Context, id string, p script, o drover.StartOptions) *drover.Run {
	o.ID, o.DecisionTimeout = id, 3*time.Second
	run, err := tr.w.client.Start(ctx, playType, p, &o)
	if err != nil {
		tr.Wrong("start %s: %v", id, err)
		return nil
	}
	tr.began(run)
	return run
}

func (tr *troupe) began(run *drover.Run) {
	tr.pressure.mu.Lock()
	tr.runs = append(tr.runs, run)
	tr.pressure.mu.Unlock()
	tr.Step()
}

// ends waits for the end of a workflow and wants it to be of a status, with a result if it completed.
func (tr *troupe) ends(ctx context.Context, id string, status schemas.Status, result string) {
	o, err := tr.w.client.Run(id, "").Wait(ctx)
	switch {
	case err != nil:
		tr.Wrong("result of %s: %v", id, err)
	case o.Status != status || status == schemas.StatusCompleted && text(o.Result) != result:
		tr.Wrong("%s: got %s %s %s, want %s %s", id, o.Status, o.Result, o.Reason, status, result)
	}
}

// joined is a parent with three children: one works and continues as new, one waits for a signal of the parent's, one
// ends when the parent asks it to.
func (tr *troupe) joined(ctx context.Context, id string) {
	run := tr.open(ctx, id, script{Acts: []act{
		{Do: doChild, Workflow: id + "/chain", Play: &script{Acts: []act{{Do: doWork, Name: "echo"}, {Do: doRenew}, {Do: doSleep, Seconds: 0.05}, {Do: doRenew}, {Do: doWork, Name: "flaky", Retry: 0.05}}}},
		{Do: doChild, Workflow: id + "/ear", Play: &script{Acts: []act{{Do: doHear, Name: "go"}, {Do: doWork, Name: "echo"}}}},
		{Do: doChild, Workflow: id + "/idle", Play: &script{Acts: []act{{Do: doHold}}}},
		{Do: doWork, Name: "echo"},
		{Do: doMiss, Workflow: id + "/nobody", Name: "go"},
		{Do: doTell, Workflow: id + "/ear", Name: "go"},
		{Do: doStop, Workflow: id + "/idle"},
		{Do: doJoin},
	}}, drover.StartOptions{})
	if run == nil {
		return
	}
	const chain, ear = "echo ok;renewed;slept;renewed;flaky 2;", "heard go;echo ok;"
	tr.ends(ctx, id, schemas.StatusCompleted, "echo ok;refused UNKNOWN_EXTERNAL_WORKFLOW_EXECUTION;"+
		"child completed "+chain+";child completed "+ear+";child canceled;")
	tr.Step()
	tr.ends(ctx, id+"/chain", schemas.StatusCompleted, chain)
	tr.ends(ctx, id+"/ear", schemas.StatusCompleted, ear)
	tr.ends(ctx, id+"/idle", schemas.StatusCanceled, "")
	tr.mu.Lock()
	tr.parents = append(tr.parents, run)
	tr.mu.Unlock()
}

// orphaned is a parent that is terminated: its policy takes its children along.
func (tr *troupe) orphaned(ctx context.Context, id string, policy schemas.ChildPolicy, hasty bool) {
	one := script{Acts: []act{{Do: doHold}}}
	if policy == schemas.ChildTerminate { // which goes on down the tree; a child that gives in to a cancel request closes by itself
		one.Acts = []act{{Do: doChild, Workflow: id + "/one/deep", Play: &script{Acts: []act{{Do: doHold}}}}, {Do: doHold}}
	}
	run := tr.open(ctx, id, script{Acts: []act{
		{Do: doChild, Workflow: id + "/one", Play: &one},
		{Do: doChild, Workflow: id + "/two", Play: &script{Acts: []act{{Do: doHold}}}},
		{Do: doHold},
	}}, drover.StartOptions{ChildPolicy: policy})
	if run == nil {
		return
	}
	if !hasty {
		tr.met(ctx, run, schemas.EventChildStarted, 2)
	}
	tr.Step()
	if err := run.Terminate(ctx, &drover.TerminateOptions{Reason: "enough"}); err != nil {
		tr.Wrong("terminate %s: %v", id, err)
	}
	tr.ends(ctx, id, schemas.StatusTerminated, "")
	tr.Step()
	status := map[schemas.ChildPolicy]schemas.Status{schemas.ChildTerminate: schemas.StatusTerminated, schemas.ChildRequestCancel: schemas.StatusCanceled}[policy]
	if !hasty { // else they may never have begun, and drover verify --idle judges
		tr.ends(ctx, id+"/one", status, "")
		tr.ends(ctx, id+"/two", status, "")
	}
}

// met waits until a run has so many events of a type.
func (tr *troupe) met(ctx context.Context, run *drover.Run, want schemas.EventType, n int) {
	for e, err := range run.History(ctx, drover.HistoryOptions{Follow: true}) {
		if err != nil {
			tr.Wrong("history of %s: %v", run.ID, err)
			return
		}
		if e.Type() == want {
			n--
		}
		if n == 0 {
			return
		}
	}
	tr.Wrong("%s ended before it had %d more %s", run.ID, n, want)
}

// chain is a workflow that continues as new while signals and a cancel request come.
func (tr *troupe) chain(ctx context.Context, id string) {
	p := script{Stubborn: true, Acts: []act{
		{Do: doWork, Name: "echo"},
		{Do: doRenew},
		{Do: doSleep, Seconds: 0.02},
		{Do: doRenew},
		{Do: doHear, Name: load.Poke, Times: 2},
		{Do: doRenew},
		{Do: doHear, Name: load.Poke, Times: 2},
		{Do: doWork, Name: "echo"},
	}}
	var run *drover.Run
	for n := range 2 { // the first one begins it
		s := poke{id, fmt.Sprintf(`"signal %d with the start of %s"`, n, id)}
		r, err := tr.w.client.SignalWithStart(ctx, playType, p, load.Poke, json.RawMessage(s.body), &drover.StartOptions{ID: id, DecisionTimeout: 3 * time.Second})
		if err != nil {
			tr.Wrong("signal with start %s: %v", id, err)
			return
		}
		if n == 0 {
			tr.began(r)
			run = r
		}
		tr.pressure.mu.Lock()
		tr.acked = append(tr.acked, s)
		tr.pressure.mu.Unlock()
	}
	tr.cancel(ctx, run)
	tr.Step()
	tr.poke(ctx, id, 2)
	tr.pokeByAPI(ctx, run, 3)
	tr.ends(ctx, id, schemas.StatusCompleted, "echo ok;renewed;slept;renewed;heard poke;renewed;heard poke;echo ok;")
	tr.Step()
	tr.mu.Lock()
	tr.chains = append(tr.chains, id)
	tr.mu.Unlock()
}

// cancel asks a chain to end, whichever run of it is open, until an answer comes. Every try is the same request.
func (tr *troupe) cancel(ctx context.Context, run *drover.Run) {
	body, err := json.Marshal(&schemas.ExecutionRequest{
		WorkflowID: run.ID, Run: run.RunID, Chain: true, RequestID: "cancel of " + run.ID, Reason: "please",
	})
	if err != nil {
		tr.Wrong("cancel %s: %v", run.ID, err)
		return
	}
	for ctx.Err() == nil {
		one, stop := context.WithTimeout(ctx, 2*time.Second)
		m, err := tr.nc.RequestWithContext(one, namespace.API("cancel"), body)
		stop()
		var a schemas.AckResponse
		if err == nil && json.Unmarshal(m.Data, &a) == nil && (a.Error == nil || a.Error.Code != schemas.CodeUnavailable) {
			if a.Error != nil {
				tr.Wrong("cancel %s: %v", run.ID, a.Error)
			}
			return
		}
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return
		}
	}
}

// enter begins a round of families and returns how much progress they will make.
func (tr *troupe) enter(ctx context.Context, prefix string, round int) (total int) {
	policy := []schemas.ChildPolicy{schemas.ChildTerminate, schemas.ChildRequestCancel}[round%2]
	for n := range 2 {
		tr.Go(func() { tr.joined(ctx, fmt.Sprintf("%s-joined-%d", prefix, n)) })
		tr.Go(func() { tr.orphaned(ctx, fmt.Sprintf("%s-orphaned-%d", prefix, n), policy, n == 1) })
		tr.Go(func() { tr.chain(ctx, fmt.Sprintf("%s-chain-%d", prefix, n)) })
	}
	return 2 * (2 + 3 + 5)
}

// settled checks at the end that nothing is open, that what workflows did to one another agrees, and that each parent
// heard of each child once.
func (tr *troupe) settled() {
	tr.w.t.Helper()
	poll.Until(tr.w.t, patience, "no run is open", func() bool { return tr.w.open() == 0 })
	tr.nothingLost()
	tr.w.idle()
	for _, run := range tr.parents {
		began, ended := map[int64]int{}, map[int64]int{}
		for _, e := range tr.w.events(run) {
			switch a := e.Attributes.(type) {
			case *schemas.ChildScheduled:
				began[e.ID], ended[e.ID] = 0, 0
			case *schemas.ChildStarted:
				began[a.ScheduledEventID]++
			case *schemas.ChildSuccess:
				ended[a.ScheduledEventID]++
			case *schemas.ChildCanceled:
				ended[a.ScheduledEventID]++
			}
		}
		for id := range began {
			if len(began) != 3 || began[id] != 1 || ended[id] != 1 {
				tr.w.t.Errorf("%s: of %d children, that of event %d began %d times and ended %d times, want 3 and once", run.ID, len(began), id, began[id], ended[id])
			}
		}
	}
	for _, id := range tr.chains {
		if n := tr.w.count(id, schemas.EventWorkflowCancelRequested); n != 1 {
			tr.w.t.Errorf("%s: %d cancel requests in the chain, want 1", id, n)
		}
		if n := tr.w.count(id, schemas.EventWorkflowStarted); n != 4 {
			tr.w.t.Errorf("%s: %d runs in the chain, want 4", id, n)
		}
	}
}

// open counts the runs that have not ended.
func (w *world) open() int64 {
	w.t.Helper()
	ctx, cancel := w.bounded()
	defer cancel()
	n, _, err := w.client.Count(ctx, drover.ListOptions{Status: schemas.StatusOpen})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Families of workflows run while the server, or one of two brokers, is killed with -9 at a random place. Each round ends
// when all of them have ended as they should.
func TestCrashRoundsOfFamilies(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*crashSeed, uint64(time.Now().UnixNano()))
	rounds := cmp.Or(*crashRounds, 3)
	if testing.Short() && *crashRounds == 0 {
		rounds = 2
	}
	t.Logf("-crash.seed=%d -crash.rounds=%d", seed, rounds)
	broker := func(name string) func(*world) *process {
		return func(w *world) *process { return w.beside(name, "broker", "--claim-ttl", "2s") }
	}
	for lane, tt := range []struct {
		name    string
		around  func(*world)
		victims []func(*world) *process
	}{
		{"the server", func(*world) {}, []func(*world) *process{
			func(w *world) *process { return w.embedded("--profile", "dev", "--claim-ttl", "2s", "--node", "one") },
		}},
		{"one of two brokers", func(w *world) { w.embedded("--profile", "dev", "--roles", "timers,ops") }, []func(*world) *process{broker("one"), broker("two")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tt.around(w)
			alive := make([]*process, len(tt.victims))
			for i, start := range tt.victims {
				alive[i] = start(w)
			}
			w.role("player", "")
			tr := &troupe{pressure: newPressure(w), nc: w.plain()}
			rng := rand.New(rand.NewPCG(seed, uint64(lane)))
			for round := range rounds {
				ctx, cancel := context.WithTimeoutCause(t.Context(), 2*patience, errors.New("the round takes too long"))
				total := tr.enter(ctx, fmt.Sprintf("round-%d", round), round)
				at, victim := rng.IntN(total*3/4), rng.IntN(len(alive))
				if round == 0 { // the first broker owns all until the second one takes its share
					victim = 0
				}
				tr.Reach(ctx, at)
				began := time.Now()
				alive[victim].Kill()
				alive[victim] = tt.victims[victim](w)
				tr.End()
				cancel()
				t.Logf("round %d: kill -9 of victim %d at step %d of %d; everything had ended %v later", round, victim, at, total, time.Since(began).Round(time.Millisecond))
			}
			tr.settled()
		})
	}
}
