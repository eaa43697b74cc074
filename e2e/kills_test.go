package e2e

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/load"
	"github.com/droverhq/drover/internal/poll"
)

var (
	kills   = flag.Int("kills", 0, "kills of a broker in TestTakeOverAfterKills; a bound of a second is asserted when it is given (default 2, with half the TTL as the bound)")
	killTTL = flag.Duration("kills.ttl", 30*time.Second, "time to live of the claims in TestTakeOverAfterKills")
)

// One of two brokers is killed with -9 under load, again and again. The other one serves each of its partitions long before the claims
// run out, and no call of a client fails: it only waits.
func TestTakeOverAfterKills(t *testing.T) {
	rounds, limit, every := *kills, time.Second, 50*time.Millisecond
	if rounds == 0 {
		rounds, limit, every = 2, *killTTL/2, 100*time.Millisecond
	}
	w := newWorld(t)
	w.bareNATS()
	n := newNotes(w)
	flags := []string{"--partitions", fmt.Sprint(partitions), "--claim-ttl", killTTL.String()}
	d := newDuo(w, flags...)
	w.beside("timers", "timers", flags...)
	n.decider(w)
	n.worker(w)
	f := newTraffic(w, partitions, every, load.Input{Steps: 1, Timer: 100}, load.Input{Steps: 1})
	p := &pair{world: w}
	copy(p.ids[:], f.ids)
	nc := w.plain()
	var took []time.Duration
	for round := range rounds {
		victim, heir := "one", "two"
		if round%2 == 1 {
			victim, heir = heir, victim
		}
		owned := d.shared()[victim]
		wait(t.Context(), time.Duration(round%5)*(*killTTL)/15) // at another moment between two renewals
		killed := time.Now()
		d.brokers[victim].Kill()
		for _, partition := range owned {
			poll.Until(t, patience, fmt.Sprintf("broker %s serves partition %d", heir, partition), func() bool { return p.serves(nc, heir, partition) })
		}
		took = append(took, time.Since(killed))
		t.Logf("round %d: the %d partitions of %s are served after %v", round, len(owned), victim, took[round].Round(time.Millisecond))
		d.begin(victim)
	}
	f.finish()
	slices.Sort(took)
	t.Logf("%d kills, TTL %v: median %v, 90 %% %v, slowest %v", rounds, *killTTL, took[rounds/2].Round(time.Millisecond), took[rounds*9/10].Round(time.Millisecond), took[rounds-1].Round(time.Millisecond))
	if took[rounds-1] > limit {
		t.Errorf("slowest of %d take-overs: %v, want at most %v", rounds, took[rounds-1], limit)
	}
}
