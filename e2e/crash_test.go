package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/droverhq/drover/e2e/load"
)

var (
	crashRounds = flag.Int("crash.rounds", 0, "rounds of TestCrashRounds (default 20, with -short 10)")
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of TestCrashRounds (default a new one, which is printed)")
)

// lanes are the fleets among which the rounds are shared: a round waits most of its time for a claim or a lease to run
// out.
const lanes = 2

// members are the processes of a fleet, with what starts each.
var members = map[string]func(w *world) *process{
	"server":  func(w *world) *process { return w.embedded("--profile", "dev", "--roles", "ops") },
	"broker":  func(w *world) *process { return w.beside("broker", "broker", "--claim-ttl", "2s") },
	"timers":  func(w *world) *process { return w.beside("timers", "timers", "--claim-ttl", "2s") },
	"decider": func(w *world) *process { return w.role("decider", load.Type) },
	"worker":  func(w *world) *process { return w.role("worker", load.List) },
}

// codeMembers are the same with workflow code in place of the raw decider.
var codeMembers = func() map[string]func(w *world) *process {
	all := maps.Clone(members)
	all["decider"] = func(w *world) *process { return w.role("code-decider", load.Type) }
	return all
}()

// order is the one in which they start.
var order = []string{"server", "broker", "timers", "decider", "worker"}

// Under load one process after the other is killed with -9 and started again, beside a raw decider in one lane, and workflow
// code in the other. Each round ends when all its workflows
// have ended as they should; then nothing that was acknowledged is missing, and no rule is broken.
func TestCrashRounds(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*crashSeed, uint64(time.Now().UnixNano()))
	rounds := cmp.Or(*crashRounds, 20)
	if testing.Short() && *crashRounds == 0 {
		rounds = 10
	}
	t.Logf("-crash.seed=%d -crash.rounds=%d", seed, rounds)
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			members := []map[string]func(w *world) *process{members, codeMembers}[lane]
			fleet := map[string]*process{}
			for _, name := range order {
				fleet[name] = members[name](w)
			}
			p := newPressure(w)
			// Each lane shuffles the victims anew when all of them have died.
			rng := rand.New(rand.NewPCG(seed, uint64(lane)))
			var victims []int
			for round := lane; round < rounds; round += lanes {
				if len(victims) == 0 {
					victims = rng.Perm(len(order))
				}
				crash(p, fleet, members, order[victims[0]], round, rng)
				victims = victims[1:]
			}
			p.nothingLost()
		})
	}
}

// crash is one round.
func crash(p *pressure, fleet map[string]*process, members map[string]func(w *world) *process, victim string, round int, rng *rand.Rand) {
	w := p.w
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	total := p.begin(ctx, fmt.Sprintf("round-%d", round), loads(rng, 8))
	at := rng.IntN(total * 3 / 4)
	p.Reach(ctx, at)
	began := time.Now()
	fleet[victim].Kill()
	fleet[victim] = members[victim](w)
	p.End()
	w.t.Logf("round %d: kill -9 of %s at step %d of %d; everything had ended %v later", round, victim, at, total, time.Since(began).Round(time.Millisecond))
	for _, m := range fleet {
		m.Alive()
	}
}
