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
func TestForlornQueueKeepsItsOrder(t *testing.T) {
	b := &forlornQueues{of: map[string]*forlornQueue{}, at: map[string]forlornPlace{}}
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
			l = &forlornQueue{order: want} // nothing is kept
		}
		if l.n != len(want) || len(b.at) != l.n || l.n > 0 && l.order[l.head] != want[0] || len(l.order) > 2*l.n+1025 {
			t.Fatalf("step %d: %d runs, %d places known and %d kept, want %d, the first of them %v", n, l.n, len(b.at), len(l.order), len(want), want[:min(1, len(want))])
		}
	}
	if diff := cmp.Diff(want, slices.Collect(b.oldest())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Slow deciders are asked for more at once, as long as more of them makes none slower; who falls behind is asked for fewer.
func TestForlornQueueFindsItsWidth(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		answers []time.Duration // repeated
		n, want int
	}{
		"as long as the first":           {[]time.Duration{5 * time.Second}, learnFrom + 1000, leastCalled + 1000},
		"no more than the most":          {[]time.Duration{ms}, 20_000, mostCalled},
		"now long and now short":         {[]time.Duration{ms, 2 * time.Second}, learnFrom + 1000, leastCalled + 1000},
		"one is done at once, and first": {append([]time.Duration{0}, slices.Repeat([]time.Duration{time.Second}, 999)...), 1000, leastCalled + 1000 - learnFrom},
	} {
		l := &forlornQueue{width: leastCalled}
		for i := range c.n {
			l.answered(schemas.Duration(c.answers[i%len(c.answers)]))
		}
		if l.width != c.want {
			t.Errorf("%s: asks for %d at once, want %d", name, l.width, c.want)
		}
	}
	// A worker does 1,000 a second, whatever it is asked for: it has little more in hand than when it began, and goes on so.
	l := &forlornQueue{width: leastCalled}
	for range 100_000 {
		l.answered(schemas.Duration(l.width) * schemas.Duration(ms))
	}
	if l.width > 3*leastCalled {
		t.Errorf("asks for %d at once of a worker that is behind, want %d at most", l.width, 3*leastCalled)
	}
	// The first answers were quicker than any since.
	l = &forlornQueue{width: leastCalled}
	for i := range 2000 {
		took := 2 * time.Second
		if i < learnFrom {
			took = ms
		}
		l.answered(schemas.Duration(took))
	}
	if l.width < 10*leastCalled {
		t.Errorf("asks for %d at once of deciders that think longer than at first, want %d", l.width, 10*leastCalled)
	}
}
