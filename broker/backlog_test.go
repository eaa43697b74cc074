package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// Runs that nobody decides for leave the memory and cost next to nothing. When somebody comes he is asked for them in the order in which they came, so
// many at a time that he can follow.
func TestBacklogRunsAreCalledBack(t *testing.T) {
	const n, atOnce = 300, 128
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var reads, asks atomic.Int64
		f.node("a", func(subj string, body []byte) cutwire.Verdict {
			switch {
			case subj == "$JS.API.DIRECT.GET."+ns.StreamHistory(0) && strings.HasPrefix(string(body), `{"seq":`):
				reads.Add(1)
			case strings.HasPrefix(subj, "drover.default.decide."):
				asks.Add(1)
			}
			return cutwire.Pass
		}, func(o *broker.Options) { o.CachedRuns = 1 })
		f.starts(n)
		time.Sleep(20 * time.Second)
		asks.Store(0)
		time.Sleep(5 * time.Minute)
		if got := asks.Load(); got > 310 {
			t.Errorf("asked %d times in 300 s, want once a second for all of them", got)
		}
		if why, _ := f.api("why", `{"workflowId":"w7"}`)["because"].(string); !strings.HasPrefix(why, `no decider for type "order" is listening`) {
			t.Errorf("why: %s", why)
		}
		for _, r := range f.audited("w1", "w150", "w299").Runs {
			if r.Decision != schemas.DecisionForlorn {
				t.Errorf("the audit is told that %s is %q", r.WorkflowID, r.Decision)
			}
		}

		var mu sync.Mutex
		var open, most int
		type question struct {
			came int // how many runs came before it
			at   time.Time
		}
		var order []question
		reads.Store(0)
		sub, err := f.nc.QueueSubscribe(ns.Decide("order"), "deciders", func(m *nats.Msg) {
			var task decisionTask
			if err := json.Unmarshal(m.Data, &task); err != nil {
				t.Errorf("decision task %s: %v", m.Data, err)
			}
			var came int
			if _, err := fmt.Sscanf(task.WorkflowID, "w%d", &came); err != nil {
				t.Error(err)
			}
			mu.Lock()
			order = append(order, question{came, time.Now()})
			open++
			most = max(most, open)
			mu.Unlock()
			time.AfterFunc(5*time.Second, func() {
				mu.Lock()
				open--
				mu.Unlock()
				if err := m.Respond([]byte(`{"token":"` + task.Token + `","decisions":` + complete + `}`)); err != nil {
					t.Error(err)
				}
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = sub.Unsubscribe() }()
		f.request0(ns.Announce("order"))
		for i := range n {
			f.completes(fmt.Sprintf("w%d", i))
		}
		if reads.Load() == 0 {
			t.Error("no run was read: none had left the memory")
		}
		mu.Lock()
		defer mu.Unlock()
		if len(order) != n || most > 2*atOnce || most < atOnce {
			t.Errorf("%d questions, %d at once at most; want %d, from %d to %d at once", len(order), most, n, atOnce, 2*atOnce)
		}
		// What is asked for at one time is read by several readers: any of them may be the last.
		for _, q := range order {
			var overtaken, overtakes int
			for _, other := range order {
				switch {
				case other.at.Before(q.at) && other.came > q.came:
					overtaken++
				case other.at.After(q.at) && other.came < q.came:
					overtakes++
				}
			}
			if overtaken > atOnce || overtakes > atOnce {
				t.Errorf("w%d was asked for after %d that came later and before %d that came earlier",
					q.came, overtaken, overtakes)
			}
		}
	})
}

// An owner that dies takes its backlog with it. The alarms of the runs are for the next one.
func TestBacklogRunsOfAnOwnerThatDies(t *testing.T) {
	const n = 20
	virtually(t, 1, func(t *testing.T, f *fleet) {
		a := f.node("a", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.starts(n)
		time.Sleep(3 * time.Minute)
		a.kill()
		f.node("b", nil, func(o *broker.Options) { o.CachedRuns = 1 })
		f.decider("order", func(*decisionTask) string { return complete })
		time.Sleep(80 * time.Second)
		for i := range n {
			if got := f.result0(fmt.Sprintf("w%d", i)); got != "completed" {
				t.Errorf("w%d: %s", i, got)
			}
		}
	})
}
