package deciders

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// fakeHost notes what is recalled and what is to be called later.
type fakeHost struct {
	recalled []string
	from     []*Queue
	later    []func()
	over     []uint64
}

func (h *fakeHost) After(_ time.Duration, f func()) { h.later = append(h.later, f) }

func (h *fakeHost) Recall(wid string, from *Queue) {
	h.recalled, h.from = append(h.recalled, wid), append(h.from, from)
}

func (h *fakeHost) DeferralOver(ask uint64) { h.over = append(h.over, ask) }

// run calls what was to be called later, and returns what was recalled since the last time.
func (h *fakeHost) run() string {
	later := h.later
	h.later = nil
	for _, f := range later {
		f()
	}
	return h.take()
}

func (h *fakeHost) take() string {
	slices.Sort(h.recalled)
	all := strings.Join(h.recalled, " ")
	h.recalled, h.from = nil, nil
	return all
}

// One run of each type is asked for again and again while somebody waits; nothing is kept afterwards.
func TestBacklogIsProbed(t *testing.T) {
	h := &fakeHost{}
	b := NewBacklog(h)
	b.Enter("a", "a1", nil)
	b.Enter("a", "a2", nil)
	b.Enter("b", "b1", nil)
	if got := h.run(); got != "a1 b1" {
		t.Fatalf("recalled %q, want the oldest of each type", got)
	}
	if got := h.run(); got != "a2" {
		t.Errorf("recalled %q, want a2", got)
	}
	if len(h.later) != 0 || len(b.queues) != 0 || len(b.places) != 0 {
		t.Errorf("%d timers and %d queues are left, want none", len(h.later), len(b.queues))
	}
}

// A run that was recalled in vain keeps its turn.
func TestRecalledInVain(t *testing.T) {
	h := &fakeHost{}
	b := NewBacklog(h)
	for _, wid := range []string{"w1", "w2", "w3"} {
		b.Enter("a", wid, nil)
	}
	h.later[0]()
	b.Enter("a", h.recalled[0], h.from[0])
	if diff := cmp.Diff([]string{"w1", "w2", "w3"}, slices.Collect(b.Oldest())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Somebody who listens is asked for no more runs at once than the width, and for others once those
// have ended.
func TestAnnouncedRecallsTheWidth(t *testing.T) {
	h := &fakeHost{}
	b := NewBacklog(h)
	for n := range 3 * leastCalled {
		b.Enter("a", fmt.Sprint("w", n), nil)
	}
	b.Announced("other")
	b.Announced("a")
	b.Announced("a")
	if len(h.recalled) != leastCalled {
		t.Fatalf("%d are recalled, want %d", len(h.recalled), leastCalled)
	}
	for _, q := range h.from {
		q.Ended()
	}
	if b.Announced("a"); len(h.recalled) != 2*leastCalled {
		t.Errorf("%d are recalled, want %d", len(h.recalled), 2*leastCalled)
	}
}

// Whatever leaves and comes back, the others keep their turns, and what is kept is no more than twice as many.
func TestBacklogQueueKeepsItsOrder(t *testing.T) {
	b := NewBacklog(&fakeHost{})
	var want []string
	for n := range 20_000 {
		wid := fmt.Sprint("w", n)
		switch k := rand.IntN(10); {
		case k < 4 || len(want) == 0:
			b.add("a", wid, false)
			want = append(want, wid)
		case k < 6: // called back in vain
			first := want[0]
			b.Remove(first)
			b.add("a", first, len(want) > 1)
		case k < 8:
			b.Remove(want[0])
			want = want[1:]
		case k == 8:
			i := rand.IntN(len(want))
			b.Remove(want[i])
			want = slices.Delete(want, i, i+1)
		default:
			b.add("a", want[rand.IntN(len(want))], false)
			b.Remove("nobody")
		}
		l := b.queues["a"]
		if l == nil {
			l = &Queue{order: want} // nothing is kept
		}
		if l.n != len(want) || len(b.places) != l.n || l.n > 0 && l.order[l.head] != want[0] || len(l.order) > 2*l.n+1025 {
			t.Fatalf("step %d: %d runs, %d places known and %d kept, want %d, the first of them %v", n, l.n, len(b.places), len(l.order), len(want), want[:min(1, len(want))])
		}
	}
	if diff := cmp.Diff(want, slices.Collect(b.Oldest())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Slow deciders are asked for more at once, as long as more of them makes none slower; who lags is asked for no more than he does.
func TestBacklogQueueFindsItsWidth(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		took        func(n, width int) time.Duration // the n-th answer
		least, most int
	}{
		"as long as the first":        {func(int, int) time.Duration { return 5 * time.Second }, leastCalled + 1900, leastCalled + 2000},
		"now long and now short":      {func(n, _ int) time.Duration { return time.Duration(n%2) * time.Second }, leastCalled + 1900, leastCalled + 2000},
		"the first ones were quicker": {func(n, _ int) time.Duration { return time.Duration(min(n/learnFrom, 1))*time.Second + ms }, leastCalled + 1700, leastCalled + 2000},
		"nearly too late":             {func(int, int) time.Duration { return 200 * ms }, leastCalled, leastCalled},
		// It does 1,000 a second, and what it has in hand waits in line.
		"a worker that lags": {func(_, width int) time.Duration { return time.Duration(width) * ms }, leastCalled, leastCalled + learnFrom},
	} {
		l := &Queue{width: leastCalled}
		for n := range 2000 {
			l.Answered(schemas.Duration(c.took(n, l.width)))
		}
		if l.width < c.least || l.width > c.most {
			t.Errorf("%s: asks for %d at once, want %d to %d", name, l.width, c.least, c.most)
		}
	}
	l := &Queue{width: leastCalled}
	for range 20_000 {
		l.Answered(schemas.Duration(ms))
	}
	if l.width != mostCalled {
		t.Errorf("asks for %d at once, want %d at most", l.width, mostCalled)
	}
}
