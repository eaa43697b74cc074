package broker_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

const (
	pairRuns  = 2
	pairSteps = 3
)

// duo is an owner and a pair of workers that are replaced when they die.
type duo struct {
	*fleet
	over    atomic.Bool // what is judged is over
	offered atomic.Int64
	ended   chan struct{}
	heirs   sync.WaitGroup // who replace the dead
}

// live starts them. judge sees what the first of a role publishes.
func (w *duo) live(judge map[string]func(string, []byte) cutwire.Verdict) {
	w.t.Helper()
	only := func(role string) func(string, []byte) cutwire.Verdict {
		return func(subj string, message []byte) cutwire.Verdict {
			var d decisions
			d.judge(subj, message)
			w.offered.Add(d.offered.Load())
			if judge[role] == nil || w.over.Load() {
				return cutwire.Pass
			}
			return judge[role](subj, message)
		}
	}
	owner := w.node("a", only("owner"))
	workers := w.pairs("w1", pairSteps, only("workers"))
	w.heirs.Go(func() {
		select {
		case <-owner.wire.Killed():
		case <-owner.failed:
		case <-w.ended:
			return
		}
		owner.stop()
		w.node("b", nil)
	})
	w.heirs.Go(func() {
		select {
		case <-workers.wire.Killed():
			w.pairs("w2", pairSteps, nil)
		case <-w.ended:
		}
	})
}

// work runs the workflows and checks that all happened as if nothing had happened.
func (w *duo) work() {
	w.t.Helper()
	defer func() {
		close(w.ended)
		w.heirs.Wait()
	}()
	time.Sleep(time.Second)
	for n := range pairRuns {
		start := fmt.Sprintf(`{"workflowId":"w%d","type":"order","run":"r%d","requestId":"q%d"}`, n, n, n)
		for try := 0; w.start(start)["error"] != nil; try++ { // no owner takes it now
			if try == 600 {
				w.t.Fatalf("workflow w%d cannot be started", n)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	for n := range pairRuns {
		id := fmt.Sprint("w", n)
		w.completes(id)
	}
	w.over.Store(true)
	time.Sleep(30 * time.Second) // what is late comes in
	for n := range pairRuns {
		id := fmt.Sprint("w", n)
		w.wantSeen(id)
		for typ, want := range map[schemas.EventType]int{
			schemas.EventWorkflowStarted: 1, schemas.EventActivityScheduled: pairSteps, schemas.EventActivitySuccess: pairSteps,
			schemas.EventWorkflowSuccess: 1, schemas.EventDeciderFailed: 0,
		} {
			if got := w.count(id, typ); got != want {
				w.t.Errorf("%s: %d %s, want %d: %v", id, got, typ, want, w.types(id))
			}
		}
	}
	for _, d := range w.letters() {
		if d.Reason != "late-decision" && d.Reason != "stale-token" && d.Reason != "closed-activity" && d.Reason != "closed-workflow" {
			w.t.Errorf("dead letter %s about %s: %s", d.Reason, d.Subject, d.Details)
		}
	}
}

// Whatever becomes of any one publish of an owner, or of workers that decide ahead: every activity is in the history once, and
// every decision rests upon what stands there.
func TestEveryPublishOfAPair(t *testing.T) { // P-1, P-5, P-7, P-11
	publishes := map[string]int{}
	virtually(t, 1, func(t *testing.T, f *fleet) {
		w := &duo{fleet: f, ended: make(chan struct{})}
		var owner, workers atomic.Int64
		count := func(n *atomic.Int64) func(string, []byte) cutwire.Verdict {
			return func(string, []byte) cutwire.Verdict { n.Add(1); return cutwire.Pass }
		}
		w.live(map[string]func(string, []byte) cutwire.Verdict{"owner": count(&owner), "workers": count(&workers)})
		w.work()
		publishes["owner"], publishes["workers"] = int(owner.Load()), int(workers.Load())
		if got := w.offered.Load(); got < pairRuns {
			t.Errorf("%d activities came with their decisions, want most", got)
		}
	})
	cases, hit := 0, 0
	for _, role := range []string{"owner", "workers"} {
		for k, kind := range faultKinds {
			t.Run(role+"/"+kind.name, func(t *testing.T) {
				for _, n := range tried(publishes[role], shortShare, k, len(faultKinds)) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						if pairWithFault(t, role, n, kind.verdict) {
							hit++
						}
						cases++
					})
				}
			})
		}
	}
	t.Logf("%v publishes; %d cases, of which %d met their publish", publishes, cases, hit)
	if cases-hit > 1+cases/5 {
		t.Fatalf("only %d of %d faults were injected: the runs differ too much", hit, cases)
	}
}

func pairWithFault(t *testing.T, role string, n int, verdict cutwire.Verdict) (hit bool) {
	defer runtime.GC() // as in onePublish
	virtually(t, 1, func(t *testing.T, f *fleet) {
		w := &duo{fleet: f, ended: make(chan struct{})}
		var seen atomic.Int64
		var what atomic.Pointer[string]
		w.live(map[string]func(string, []byte) cutwire.Verdict{role: func(subj string, _ []byte) cutwire.Verdict {
			if seen.Add(1) == int64(n) {
				what.Store(&subj)
				return verdict
			}
			return cutwire.Pass
		}})
		w.work()
		if s := what.Load(); s != nil {
			hit = true
			t.Logf("publish %d: %s", n, *s)
		}
	})
	return hit
}

// The message with an outcome and its decision, and the record that they become: whichever process dies around it, and whatever
// becomes of it, the decision is in the history once or not at all.
func TestOutcomeWithADecisionMeetsAFault(t *testing.T) { // P-1, P-11
	for _, c := range []struct {
		role, message string
		nth           int
	}{
		{"workers", "drover.default.outcome.", 2},
		{"workers", "drover.default.outcome.", 3}, // the first is of a task from the list
		{"owner", "drover.default.decide.", 2},
		{"owner", "drover.default.history.", 4},
		{"owner", "drover.default.history.", 5},
		{"owner", "_INBOX", 2},
	} {
		for _, kind := range faultKinds {
			t.Run(fmt.Sprintf("%s/%s%d/%s", c.role, c.message, c.nth, kind.name), func(t *testing.T) {
				defer runtime.GC()
				virtually(t, 1, func(t *testing.T, f *fleet) {
					w := &duo{fleet: f, ended: make(chan struct{})}
					var hit atomic.Int64
					judge := nth(c.nth, c.message, kind.verdict)
					w.live(map[string]func(string, []byte) cutwire.Verdict{c.role: func(subj string, message []byte) cutwire.Verdict {
						v := judge(subj, message)
						if v != cutwire.Pass {
							hit.Add(1)
						}
						return v
					}})
					if w.work(); hit.Load() != 1 {
						t.Errorf("%d messages met the fault, want one", hit.Load())
					}
				})
			})
		}
	}
}
