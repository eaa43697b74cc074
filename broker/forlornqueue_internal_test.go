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
	l := &forlornQueue{width: leastCalled}
	for range 1000 {
		l.answered(schemas.Seconds(5))
	}
	if l.width != leastCalled+1000 {
		t.Errorf("asks for %d at once of deciders that think for 5 s, want %d", l.width, leastCalled+1000)
	}
	l = &forlornQueue{width: leastCalled}
	l.answered(schemas.Duration(time.Millisecond))
	for range 100 {
		l.answered(schemas.Duration(10 * time.Millisecond))
	}
	if l.width != leastCalled+101 {
		t.Errorf("asks for %d at once while answers come in 10 ms, want %d", l.width, leastCalled+101)
	}
	for range 1000 {
		l.answered(schemas.Duration(100 * time.Millisecond))
	}
	if l.width != leastCalled {
		t.Errorf("asks for %d at once when answers take 100 times as long as at first, want %d", l.width, leastCalled)
	}
}
