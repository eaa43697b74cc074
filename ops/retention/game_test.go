package retention_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/retention"
	ops "github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/schemas"
)

var games = flag.Uint64("games", 2, "retention: how many games are played")

// A game of starts, signals, ends, crashes and passes: what is open is never touched, every history is whole at any moment, and in
// the end each group is what the simple model of package internal/retention leaves of it. The seeds are fixed; each is a game.
func TestGame(t *testing.T) {
	for seed := range *games {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			live(t, ops.Options{FlowDefault: "2", Default: "min(3, 90m)"}, func(h *house) {
				g := &game{house: h, dice: rand.New(rand.NewPCG(seed, 7)), open: map[string]bool{}}
				for range 40 {
					g.turn()
				}
				g.end()
			})
		})
	}
}

type game struct {
	*house
	dice *rand.Rand
	n    int
	open map[string]bool // workflow ids of runs that wait for a signal
}

// turn is something that happens.
func (g *game) turn() {
	g.n++
	id := fmt.Sprint("w", g.n)
	typ := []string{"flow", "raw"}[g.dice.IntN(2)]
	in := says{Retention: [][]string{nil, nil, {"1"}, {"max(1, 30m)"}, {"disabled"}}[g.dice.IntN(5)]}
	if in.Retention != nil {
		in.Hash = "h" + in.Retention[0] // one retention for each group
	}
	switch g.dice.IntN(8) {
	case 0:
		in.Stay = true
		g.start(typ, id, in)
		g.open[id] = true
	case 1:
		for id := range g.open {
			if err := g.Client.Run(id, "").Signal(g.t.Context(), "go", nil); err != nil {
				g.t.Fatal(err)
			}
			g.Wait(g.Client.Run(id, ""))
			delete(g.open, id)
			break
		}
	case 2:
		g.Sleep(time.Duration(g.dice.IntN(40)) * time.Minute)
	case 3:
		g.Crash(time.Second)
		g.another()
	case 4, 5:
		g.passes()
	default:
		g.run(typ, id, in)
	}
}

// passes lets the janitor pass, with a cut now and then.
func (g *game) passes() {
	left := g.dice.IntN(4)
	g.o.Before = func(string, string) error {
		if left--; left < 0 {
			return errCut
		}
		return nil
	}
	g.another()
	time.Sleep(2 * time.Minute)
	if _, err := g.j.Pass(g.t.Context()); err != nil && !strings.Contains(err.Error(), errCut.Error()) {
		g.t.Fatal(err)
	}
	g.o.Before = nil
	g.another()
	g.whole()
	kept := strings.Fields(g.kept())
	for id := range g.open {
		if !slices.Contains(kept, id) {
			g.t.Errorf("workflow %s is open and was purged", id)
		}
	}
}

// closedRun is a run as the model sees it.
type closedRun struct {
	retention.Run
	wid string
}

// model is what the simple algorithm leaves of all groups.
func (g *game) model() string {
	g.t.Helper()
	groups := map[string][]closedRun{}
	policies, governs := map[string]retention.Policy{}, map[string]retention.Policy{}
	flow, _ := retention.ParseDefault("2")
	raw, _ := retention.ParseDefault("min(3, 90m)")
	var keep []string
	scan := natsconn.ReadOptions{FilterSubjects: []string{ns.AllRuns(0)}}
	err := natsconn.Of(g.Client).Scan(g.t.Context(), ns.StreamHistory(0), scan, func(s natsconn.Stored) error {
		var r schemas.Record
		if err := schemas.Unmarshal(s.Data, &r); err != nil {
			return err
		}
		if strings.HasPrefix(r.WorkflowID, "witness-") {
			return nil
		}
		for _, e := range r.Events {
			switch a := e.Attributes.(type) {
			case *schemas.WorkflowStarted:
				policies[r.Run] = raw
				if a.WorkflowType == "flow" {
					policies[r.Run] = flow
				}
				policies[r.Run+" group"] = retention.Policy{Hash: a.WorkflowType}
			case *schemas.RetentionSet:
				p := retention.ReadPolicy(a.Policy.Hash, a.Policy.Disk, a.Policy.Soft, a.Policy.Disabled)
				policies[r.Run], policies[r.Run+" group"] = p, p
			}
			if e.Type().Closes() {
				group := policies[r.Run+" group"].Hash
				groups[group] = append(groups[group], closedRun{retention.Run{ID: fmt.Sprintf("%020d", s.Seq), Closed: s.Time, Expirable: true}, r.WorkflowID})
				governs[group] = policies[r.Run]
			}
		}
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for id := range g.open {
		keep = append(keep, id)
	}
	for group, all := range groups {
		runs := make([]retention.Run, len(all))
		for i, r := range all {
			runs[i] = r.Run
		}
		verdicts, _ := retention.Keep(governs[group], runs, time.Now())
		for i, v := range verdicts {
			if v.Fate == retention.OnDisk {
				keep = append(keep, all[i].wid)
			}
		}
	}
	slices.Sort(keep)
	return strings.Join(keep, " ")
}

// end compares what is left with the model.
func (g *game) end() {
	g.settle()
	want := g.model()
	g.pass()
	g.wantKept(want)
	g.whole()
}

// A pass that is cut short by its context says so, and the next one goes on.
func TestPassObeysItsContext(t *testing.T) {
	live(t, ops.Options{}, func(h *house) {
		ctx, cancel := context.WithCancel(h.t.Context())
		cancel()
		if _, err := h.j.Pass(ctx); err == nil {
			h.t.Error("a pass without time has an answer")
		}
		h.pass()
	})
}
