package broker_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/cutwire"
	"github.com/droverhq/drover/schemas"
)

// The first task of a run goes to the workers that are known, in the short encoding, and to the shared queue, each in its turn. Who is gone, hangs or has
// dropped the type gets no turn. While strangers answer from the shared queue it is used more.
func TestFirstTasksGoInTurn(t *testing.T) {
	type counts struct{ W1, W2, Anybody int64 }
	for name, c := range map[string]struct {
		before func(h *hall)
		runs   int
		want   counts // give or take a few
	}{
		"two workers":                      {runs: 90, want: counts{W1: 30, W2: 30, Anybody: 30}},
		"one of them is gone":              {before: func(h *hall) { h.w1.leave() }, runs: 80, want: counts{W1: 1, W2: 40, Anybody: 40}},
		"one of them has dropped the type": {before: func(h *hall) { h.w1.drops() }, runs: 80, want: counts{W1: 1, W2: 40, Anybody: 40}},
		"one of them hangs":                {before: func(h *hall) { h.w1.mutes() }, runs: 80, want: counts{W1: 1, W2: 40, Anybody: 40}},
		"a stranger comes":                 {before: func(h *hall) { h.strange() }, runs: 80, want: counts{W1: 1, W2: 1, Anybody: 78}},
		"a stranger has come and left": {
			before: func(h *hall) {
				sub := h.strange()
				h.run(8)
				if err := sub.Unsubscribe(); err != nil {
					h.f.t.Fatal(err)
				}
				h.f.plays("w3", completesIt)
			},
			runs: 81, want: counts{W1: 27, W2: 27, Anybody: 27}, // w3 cannot be called: it gets what is anybody's alone
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, 1, func(t *testing.T, f *fleet) {
				var w1, w2, anybody atomic.Int64
				f.node("a", func(subj string, body []byte) cutwire.Verdict {
					json := strings.HasPrefix(string(body), "{")
					switch {
					case subj == ns.DecideSticky("order", "w1") && !json:
						w1.Add(1)
					case subj == ns.DecideSticky("order", "w2") && !json:
						w2.Add(1)
					case subj == ns.Decide("order") && json:
						anybody.Add(1)
					case strings.HasPrefix(subj, ns.DecideSticky("order", "w3")) && !json, strings.Contains(subj, ".alive-"):
					case strings.HasPrefix(subj, ns.Decide("order")):
						t.Errorf("%s was sent %q", subj, body)
					}
					return cutwire.Pass
				})
				h := &hall{f: f, w1: f.plays("w1", completesIt)}
				h.w1.lives()
				h.run(1)
				if err := h.w1.subs[0].Unsubscribe(); err != nil { // what is anybody's is the other's
					t.Fatal(err)
				}
				h.w1.subs = h.w1.subs[1:]
				h.w2 = f.plays("w2", completesIt)
				h.w2.lives()
				h.run(8)
				if c.before != nil {
					c.before(h)
				}
				w1.Store(0)
				w2.Store(0)
				anybody.Store(0)
				h.run(c.runs)
				few := cmp.Comparer(func(a, b int64) bool { return max(a, b)-min(a, b) <= 3 })
				if diff := cmp.Diff(c.want, counts{w1.Load(), w2.Load(), anybody.Load()}, few); diff != "" {
					t.Errorf("who was asked (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// completesIt completes a run with its first decision.
func completesIt(*schemas.DecisionTask, int) []schemas.Decision {
	return []schemas.Decision{decider.Complete("done")}
}

// hall has two workers that are known. What is anybody's is for the second.
type hall struct {
	f      *fleet
	w1, w2 *player
	last   int
}

// run starts runs one after the other.
func (h *hall) run(n int) {
	h.f.t.Helper()
	for range n {
		h.last++
		id := fmt.Sprint("w", h.last)
		h.f.start(`{"workflowId":"` + id + `","type":"order"}`)
		h.f.completes(id)
	}
}

// strange lets somebody in another language have what is anybody's.
func (h *hall) strange() *nats.Subscription {
	h.f.t.Helper()
	if err := h.w2.subs[0].Unsubscribe(); err != nil {
		h.f.t.Fatal(err)
	}
	return h.f.decider("order", func(*decisionTask) string { return complete })
}

// drops lets a player of the hall serve the type no longer, and live on.
func (p *player) drops() {
	p.f.t.Helper()
	if err := p.subs[0].Unsubscribe(); err != nil {
		p.f.t.Fatal(err)
	}
	p.subs = p.subs[1:]
	p.f.flush()
}

// mutes lets a player answer nothing.
func (p *player) mutes() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = true
}
