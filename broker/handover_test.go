package broker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// mind answers decision tasks of a type after the time that it thinks, several at once, and counts them. One that thinks for an hour never answers.
func (f *fleet) mind(typ string, thinks time.Duration, asked *atomic.Int32) {
	f.t.Helper()
	_, err := f.nc.QueueSubscribe(ns.Decide(typ), "deciders", func(m *nats.Msg) {
		asked.Add(1)
		if thinks >= time.Hour {
			return
		}
		var task decisionTask
		if err := json.Unmarshal(m.Data, &task); err != nil {
			f.t.Error(err)
			return
		}
		go func() {
			time.Sleep(thinks)
			_ = m.Respond([]byte(`{"token":"` + task.Token + `","decisions":` + complete + `}`)) // the test may be over
		}()
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.flush()
}

// two starts two brokers that know each other, and returns the owner of the only partition and the other one.
func (f *fleet) two(change ...func(*broker.Options)) (owner, heir *node) {
	f.t.Helper()
	nodes := []*node{f.node("a", nil, change...), f.node("b", nil, change...)}
	time.Sleep(30 * time.Second) // the preferred one has it by now
	for i, n := range nodes {
		if len(n.broker.Owned()) == 1 {
			return n, nodes[1-i]
		}
	}
	f.t.Fatal("nobody owns the partition")
	return nil, nil
}

// owns waits until the node has a partition.
func (n *node) owns() {
	for len(n.broker.Owned()) == 0 {
		time.Sleep(time.Millisecond)
	}
}

// A decision that is being made when its partition changes hands as planned is neither lost nor asked for again.
func TestDecisionOutlivesAHandOver(t *testing.T) {
	for _, tc := range []struct {
		name   string
		thinks time.Duration
		before time.Duration // between the question and the stop
		stops  int           // how many owners leave while one decision is made
	}{
		{"at once", 2 * time.Second, 0, 1},
		{"known to be taken", 5 * time.Second, time.Second, 1},
		{"until its deadline", 9900 * time.Millisecond, 9800 * time.Millisecond, 1},
		{"two hand-overs", 8 * time.Second, time.Second, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var asked atomic.Int32
				f.mind("order", tc.thinks, &asked)
				owner, heir := f.two()
				f.start(`{"workflowId":"o","type":"order"}`)
				for asked.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(tc.before)
				for range tc.stops {
					gone := make(chan struct{})
					go func() { owner.stop(); close(gone) }()
					began := time.Now()
					heir.owns()
					if took := time.Since(began); took > 100*time.Millisecond {
						t.Fatalf("the hand-over takes %v", took)
					}
					if tc.stops > 1 {
						owner, heir = heir, f.node("c", nil)
						time.Sleep(2 * time.Second)
					}
					defer func() { <-gone }()
				}
				f.completes("o")
				f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
				if n := asked.Load(); n != 1 {
					t.Fatalf("the decider was asked %d times, want once", n)
				}
				if dead := f.dead(); len(dead) > 0 {
					t.Fatalf("got dead letters %v", dead)
				}
			})
		})
	}
}

// The answer is passed on again and again until that is confirmed. It is one answer all the same, however often it comes.
func TestPassedOnDecisionIsConfirmedLate(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked atomic.Int32
		f.mind("order", 2*time.Second, &asked)
		owner, heir := f.two()
		confirmed := 0
		heir.wire.Judge(func(_ string, body []byte) cutwire.Verdict {
			if string(body) == "+" {
				if confirmed++; confirmed <= 3 {
					return cutwire.Swallow
				}
			}
			return cutwire.Pass
		})
		f.start(`{"workflowId":"o","type":"order"}`)
		for asked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		owner.stop()
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
		time.Sleep(time.Second)
		if dead := f.dead(); len(dead) > 0 || asked.Load() != 1 || confirmed < 4 {
			t.Errorf("got dead letters %v, %d questions to the decider, and %d confirmations; want none, one, and 4", dead, asked.Load(), confirmed)
		}
	})
}

// Many decisions at once outlive a hand-over, and what the new owner asks the former one is not taken for the answer to one of
// them: it once was for the 16th.
func TestProbeIsNoAnswer(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked atomic.Int32
		f.mind("order", 3*time.Second, &asked)
		owner, heir := f.two()
		const many = 40
		for i := range many {
			f.start(fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i))
		}
		gone := make(chan struct{})
		go func() { owner.stop(); close(gone) }()
		defer func() { <-gone }()
		heir.owns()
		for i := range many {
			f.completes(fmt.Sprintf("o%d", i))
			f.wantTypes(fmt.Sprintf("o%d", i), "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
		}
		if dead := f.dead(); len(dead) > 0 || asked.Load() != many {
			t.Fatalf("the decider was asked %d times, want %d; dead letters %v", asked.Load(), many, dead)
		}
	})
}

// The former owner dies before it has passed the answer on: the new one notices and asks again, long before the deadline.
func TestFormerOwnerDies(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		var asked atomic.Int32
		f.mind("order", 5*time.Second, &asked)
		owner, heir := f.two()
		f.start(`{"workflowId":"o","type":"order"}`)
		for asked.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		gone := make(chan struct{})
		go func() { owner.stop(); close(gone) }()
		defer func() { <-gone }()
		heir.owns()
		time.Sleep(time.Second)
		if n := asked.Load(); n != 1 {
			t.Fatalf("the decider was asked %d times while its answer was expected, want once", n)
		}
		owner.wire.Kill()
		time.Sleep(time.Second)
		if n := asked.Load(); n != 2 {
			t.Fatalf("the decider was asked %d times, want twice", n)
		}
		f.completes("o")
		f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
	})
}

// An owner that nobody follows waits for its deciders, but not beyond its limit nor for one that is overdue.
func TestLoneOwnerWaitsForDeciders(t *testing.T) {
	for _, tc := range []struct {
		name          string
		thinks, limit time.Duration
		timeout       string
		want          time.Duration
		asked         int32 // in all, after another owner has come
	}{
		{"for the answer", 5 * time.Second, time.Minute, "10", 5 * time.Second, 1},
		{"up to the limit", time.Hour, 20 * time.Second, "7200", 20 * time.Second, 2},
		{"up to the deadline", time.Hour, time.Minute, "10", 10 * time.Second, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var asked atomic.Int32
				f.mind("order", tc.thinks, &asked)
				n := f.node("a", nil, func(o *broker.Options) { o.DrainTimeout = tc.limit })
				f.start(`{"workflowId":"o","type":"order","taskStartToCloseTimeout":` + tc.timeout + `}`)
				for asked.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				began := time.Now()
				n.stop()
				if took := time.Since(began).Round(time.Second); took < tc.want || took > tc.want+4*time.Second {
					t.Fatalf("it has stopped after %v, want %v", took, tc.want)
				}
				f.node("b", nil)
				time.Sleep(time.Minute)
				if n := asked.Load(); n < tc.asked || tc.asked == 1 && n != 1 {
					t.Fatalf("the decider was asked %d times, want %d", n, tc.asked)
				}
				if tc.asked == 1 {
					f.wantTypes("o", "WorkflowStarted", "DeciderScheduled", "DeciderStarted", "DeciderCompleted", "WorkflowSuccess")
				}
			})
		})
	}
}

// A planned stop leaves nothing to repeat: no task is put on its list twice, however young it is. One effect that is open would have the next owner
// repeat those of every record after it, so the owner waits for a list that is being made, and for a server that is slow.
func TestHandOverRepeatsNothing(t *testing.T) {
	late := func(prefix string, by time.Duration) func(*node) {
		return func(owner *node) {
			owner.wire.Delay(by)
			owner.wire.Judge(every(prefix, cutwire.Late))
		}
	}
	for name, disturb := range map[string]func(*node){
		"at once":                func(*node) {},
		"the other list is slow": late("$JS.API.STREAM.CREATE."+ns.StreamTasks("other"), 800*time.Millisecond),
		"the server is slow":     late(ns.Task("main", 0), 3*time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) { handOverRepeatsNothing(t, f, disturb) })
		})
	}
}

func handOverRepeatsNothing(t *testing.T, f *fleet, disturb func(owner *node)) {
	f.decider("order", func(d *decisionTask) string {
		decisions := one("")(d)
		if d.WorkflowID == "first" {
			return strings.Replace(decisions, `"list":"main"`, `"list":"other"`, 1)
		}
		return decisions
	})
	owner, heir := f.two()
	const many = 50
	f.start(`{"workflowId":"before","type":"order"}`) // the list is there
	time.Sleep(time.Second)
	disturb(owner)
	said := f.heardOwned()
	f.start(`{"workflowId":"first","type":"order"}`)
	for i := range many {
		f.start(fmt.Sprintf(`{"workflowId":"o%d","type":"order"}`, i))
	}
	owner.stop()
	heir.owns()
	time.Sleep(10 * time.Second)
	for list, want := range map[string]uint64{"main": 1 + many, "other": 1} {
		s, err := f.js.Stream(t.Context(), ns.StreamTasks(list))
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.LastSeq; n != want {
			t.Errorf("%d tasks were put on the list %s, want %d", n, list, want)
		}
	}
	if n := said(); n != 0 {
		t.Errorf("the new owner has told %d times that it repeats effects, want that none were open", n)
	}
}

// A run that nobody listens for is asked about as soon as a decider comes, whoever owns it by then.
func TestBacklogRunIsHandedOver(t *testing.T) {
	for name, cached := range map[string]int{"in memory": 0, "parked": 1} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				owner, heir := f.two(func(o *broker.Options) { o.CachedRuns = cached })
				f.starts(3)
				time.Sleep(5 * time.Minute)
				owner.stop()
				heir.owns()
				time.Sleep(5 * time.Second)
				var asked atomic.Int32
				f.mind("order", 0, &asked)
				f.request0(ns.Announce("order"))
				time.Sleep(100 * time.Millisecond)
				for _, id := range []string{"w0", "w1", "w2"} {
					if got := f.result0(id); got != "completed" {
						t.Errorf("%s: %s 100 ms after the decider has come", id, got)
					}
				}
			})
		})
	}
}

func (f *fleet) request0(subj string) {
	f.t.Helper()
	if err := f.nc.Publish(subj, nil); err != nil {
		f.t.Fatal(err)
	}
	f.flush()
}

// Without an owner a request is refused before its sender's patience ends, not left without a word.
func TestRequestWithoutOwner(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		claim := `{"node":"gone","nonce":"x-1","since":"2000-01-01T00:00:00Z","deadline":"2000-01-01T00:00:10Z","ttl":10}`
		if _, err := f.post.KVCreate(t.Context(), ns.BucketClaims(), claims.Partition(0), []byte(claim), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		f.node("a", nil)
		time.Sleep(time.Second)
		began := time.Now()
		var a schemas.AckResponse
		if err := json.Unmarshal(f.request(ns.API("describe"), `{"workflowId":"o"}`), &a); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); a.Error == nil || a.Error.Code != schemas.CodeUnavailable || took > 2*time.Second {
			t.Fatalf("got %+v after %v, want unavailable within 2 s", a.Error, took)
		}
		time.Sleep(12 * time.Second)
		f.request(ns.API("describe"), `{"workflowId":"o"}`)
	})
}

// A long poll that is open when the owner leaves is answered, so that its client asks the next one at once.
func TestLongPollOutlivesAHandOver(t *testing.T) {
	virtually(t, 1, func(t *testing.T, f *fleet) {
		owner, _ := f.two()
		f.start(`{"workflowId":"o","type":"order"}`)
		answers := make(chan time.Duration, 1)
		began := time.Now()
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := f.nc.RequestWithContext(ctx, ns.API("result"), []byte(`{"workflowId":"o","wait":50}`))
			if err != nil {
				t.Error(err)
			}
			answers <- time.Since(began)
		}()
		time.Sleep(time.Second)
		owner.stop()
		if took := <-answers; took > 1100*time.Millisecond {
			t.Fatalf("answered after %v, want at once after the stop, which was after 1 s", took)
		}
	})
}
