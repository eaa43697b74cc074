package broker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/schemas"
)

// Whatever leaves and comes back, the others keep their turns, and what is kept is no more than twice as many.
func TestBacklogQueueKeepsItsOrder(t *testing.T) {
	b := &backlogs{of: map[string]*backlogQueue{}, at: map[string]backlogPlace{}}
	var want []string
	for n := range 20_000 {
		wid := fmt.Sprint("w", n)
		switch k := rand.IntN(10); {
		case k < 4 || len(want) == 0:
			b.add("a", wid, false)
			want = append(want, wid)
		case k < 6: // called back in vain
			first := want[0]
			b.remove(first)
			b.add("a", first, len(want) > 1)
		case k < 8:
			b.remove(want[0])
			want = want[1:]
		case k == 8:
			i := rand.IntN(len(want))
			b.remove(want[i])
			want = slices.Delete(want, i, i+1)
		default:
			b.add("a", want[rand.IntN(len(want))], false)
			b.remove("nobody")
		}
		l := b.of["a"]
		if l == nil {
			l = &backlogQueue{order: want} // nothing is kept
		}
		if l.n != len(want) || len(b.at) != l.n || l.n > 0 && l.order[l.head] != want[0] || len(l.order) > 2*l.n+1025 {
			t.Fatalf("step %d: %d runs, %d places known and %d kept, want %d, the first of them %v", n, l.n, len(b.at), len(l.order), len(want), want[:min(1, len(want))])
		}
	}
	if diff := cmp.Diff(want, slices.Collect(b.oldest())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Slow deciders are asked for more at once, as long as more of them makes none slower; who falls behind is asked for no more than he does.
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
		"a worker that is behind": {func(_, width int) time.Duration { return time.Duration(width) * ms }, leastCalled, leastCalled + learnFrom},
	} {
		l := &backlogQueue{width: leastCalled}
		for n := range 2000 {
			l.answered(schemas.Duration(c.took(n, l.width)))
		}
		if l.width < c.least || l.width > c.most {
			t.Errorf("%s: asks for %d at once, want %d to %d", name, l.width, c.least, c.most)
		}
	}
	l := &backlogQueue{width: leastCalled}
	for range 20_000 {
		l.answered(schemas.Duration(ms))
	}
	if l.width != mostCalled {
		t.Errorf("asks for %d at once, want %d at most", l.width, mostCalled)
	}
}
