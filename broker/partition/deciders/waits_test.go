package deciders

import (
	"fmt"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// Whoever may have something that is late is probed, and again when that is a fourth older.
func TestProbes(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		wait  func(s *Waits)
		due   bool
		again time.Duration
	}{
		"nothing is late":      {func(*Waits) {}, false, 0},
		"a young decision":     {func(s *Waits) { s.ForWorker("a", 50*ms) }, false, ProbeAfter},
		"its decision":         {func(s *Waits) { s.ForWorker("a", 800*ms) }, true, 200 * ms},
		"another's":            {func(s *Waits) { s.ForWorker("b", 800*ms) }, false, 0},
		"one of its type":      {func(s *Waits) { s.ForType("order", 800*ms) }, true, 200 * ms},
		"an old one":           {func(s *Waits) { s.ForType("order", YoungTask+1) }, false, 0},
		"one of another type":  {func(s *Waits) { s.ForType("other", 800*ms) }, false, 0},
		"a task of its list":   {func(s *Waits) { s.ForList("l", 200*ms) }, true, ProbeAfter},
		"one of another list":  {func(s *Waits) { s.ForList("m", 200*ms) }, false, 0},
		"the youngest counts":  {func(s *Waits) { s.ForWorker("a", time.Hour); s.ForList("l", 800*ms) }, true, 200 * ms},
		"and of one key alike": {func(s *Waits) { s.ForList("l", time.Hour); s.ForList("l", 800*ms) }, true, 200 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			virtual.Run(t, func(t *testing.T) {
				time.Sleep(time.Hour)
				g := &Registry{}
				g.Answered("order", &schemas.DecisionReply{Sticky: "a", Alive: true, Lists: []string{"l"}})
				s := &Waits{}
				c.wait(s)
				due, again := g.Probes(s)
				if (len(due) == 1) != c.due || again != c.again {
					t.Fatalf("%d are probed, and again in %v; want %v, in %v", len(due), again, c.due, c.again)
				}
				if due, _ := g.Probes(s); len(due) != 0 {
					t.Error("it is probed twice at one time")
				}
			})
		})
	}
}

// Not all workers are probed at one time, and each has its turn.
func TestProbesOfManyWorkers(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		g := &Registry{}
		for n := range 3 * mostProbes {
			name := fmt.Sprint("w", n)
			g.Answered("order", &schemas.DecisionReply{Sticky: name, Alive: true})
		}
		seen := map[string]bool{}
		s := &Waits{}
		s.ForType("order", YoungTask)
		for range 3 {
			due, again := g.Probes(s)
			if len(due) != mostProbes || again <= 0 {
				t.Errorf("%d are probed, and again in %v; want %d", len(due), again, mostProbes)
			}
			for _, w := range due {
				seen[w.Name] = true
			}
		}
		if len(seen) != 3*mostProbes {
			t.Errorf("%d have been probed, want %d", len(seen), 3*mostProbes)
		}
	})
}

// A worker whose connection is gone is forgotten, and what was known of it is told once.
func TestGone(t *testing.T) {
	g := registryOf("a", "b")
	number := g.Number("a")
	if w := g.Gone(number); w == nil || w.Name != "a" {
		t.Fatalf("got %+v, want a", w)
	}
	if g.Gone(number) != nil || g.Number("a") != 0 || g.Number("b") == 0 {
		t.Error("want that a is forgotten, and b is not")
	}
}
