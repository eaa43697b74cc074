package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/droverhq/drover/e2e/load"
)

// Workers that do activities and decide after them on one connection, and the brokers, are killed with -9 while decisions come
// with outcomes. Then nothing that was acknowledged is missing, and "drover verify" finds no rule broken.
func TestPairsDie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fleet := map[string]*process{}
	for _, name := range []string{"server", "broker", "timers"} {
		fleet[name] = members[name](w)
	}
	pair := func(w *world) *process { return w.role("pair", load.List) }
	fleet["pair-1"], fleet["pair-2"] = pair(w), pair(w)
	p := newPressure(w)
	rng := rand.New(rand.NewPCG(1, 2))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	batches := 0
	batch := func() (total int) {
		batches++
		return p.begin(ctx, fmt.Sprintf("batch-%d", batches), loads(rng, 8))
	}
	for w.read().ahead == 0 { // the first of a type, and slow ones, come another way
		if ctx.Err() != nil {
			t.Fatal("no decision comes with an outcome")
		}
		batch()
		p.End()
	}
	for _, victim := range []string{"pair-1", "broker", "pair-2", "server", "pair-1", "broker"} {
		p.Reach(ctx, rng.IntN(batch()))
		fleet[victim].Kill()
		begin := members[victim]
		if begin == nil {
			begin = pair
		}
		fleet[victim] = begin(w)
		p.End()
		for _, m := range fleet {
			m.Alive()
		}
	}
	t.Logf("%d decisions came with outcomes", p.nothingLost().ahead)
}
