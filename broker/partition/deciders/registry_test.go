package deciders

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// turns are who gets the next first tasks of type order; "-" is the shared queue.
func turns(g *Registry, n int) string {
	var all []string
	for range n {
		all = append(all, cmp.Or(g.First("order"), "-"))
	}
	return strings.Join(all, " ")
}

func registryOf(names ...string) *Registry {
	g := &Registry{}
	for _, name := range names {
		g.Answered("order", &schemas.DecisionReply{Sticky: name, Alive: true})
	}
	return g
}

// The least recently used gets the first task, be it a live worker of the type or the shared queue.
func TestLeastRecentlyUsedWorker(t *testing.T) {
	for name, c := range map[string]struct {
		names  []string
		before func(g *Registry)
		want   string
	}{
		"nobody is known": {want: "- - - -"},
		"one":             {names: []string{"a"}, want: "- a - a"},
		"one that hangs": {
			names: []string{"a"}, before: func(g *Registry) { g.Overdue("a") }, want: "- - - -",
		},
		"one that is not heard": {
			names: []string{"a", "b"}, before: func(g *Registry) { g.NotHeard("a", "order") }, want: "- b - b",
		},
		"one that is heard again": {
			names: []string{"a"}, want: "- a - a", before: func(g *Registry) {
				g.NotHeard("a", "order")
				g.Answered("order", &schemas.DecisionReply{Sticky: "a", Alive: true})
			},
		},
		"one of another type": {
			names: []string{"a"}, want: "- a - a", before: func(g *Registry) {
				g.Answered("other", &schemas.DecisionReply{Sticky: "b", Alive: true})
			},
		},
		"one that has left": {
			names: []string{"a", "b"}, before: func(g *Registry) { g.Leave("a") }, want: "- b - b",
		},
		"a stranger has answered": {
			names: []string{"a"}, want: "- a - a", before: func(g *Registry) {
				turns(g, 1)
				g.SharedAnswered("order", "")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := registryOf(c.names...)
			if c.before != nil {
				c.before(g)
			}
			if got := turns(g, 4); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Another than one is the least recently used of the others that live and serve the type; the shared queue has no turn.
func TestOtherWorker(t *testing.T) {
	g := registryOf("a")
	if got := g.Other("order", "a"); got != "" {
		t.Errorf("got %q, want nobody where one is known", got)
	}
	g = registryOf("a", "b", "c", "d", "e")
	g.Answered("other", &schemas.DecisionReply{Sticky: "f", Alive: true})
	g.Overdue("d")
	g.NotHeard("e", "order")
	seen := map[string]int{}
	for range 6 {
		seen[g.Other("order", "a")]++
	}
	if seen["b"] != 3 || seen["c"] != 3 {
		t.Errorf("who was called how often: %v, want b and c three times each", seen)
	}
}

// Each of several workers has its turn before one of them has another.
func TestEachWorkerHasItsTurn(t *testing.T) {
	g := registryOf("a", "b", "c")
	seen := map[string]int{}
	for range 5 {
		for name := range strings.FieldsSeq(turns(g, 4)) {
			seen[name]++
		}
	}
	for _, name := range []string{"a", "b", "c", "-"} {
		if seen[name] != 5 {
			t.Errorf("%s had %d turns of 20, want 5", name, seen[name])
		}
	}
}

// A worker that has said that it leaves is not made known by an answer that is heard later, until it may be another one.
func TestLateAnswerOfAWorkerThatHasLeft(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		g := registryOf("a")
		g.Leave("a")
		reply := &schemas.DecisionReply{Sticky: "a", Alive: true}
		if got := g.Answered("order", reply); got != "" || g.Number("a") != 0 {
			t.Errorf("a worker that has left wants the next tasks, as %q", got)
		}
		time.Sleep(leftFor)
		if got := g.Answered("order", reply); got != "a" || g.Remembers(g.Number("a")) != "a" {
			t.Errorf("got %q, want that it is known again", got)
		}
	})
}

// A worker that refused a task gets none for a while; one that did not hear it, none until it answers.
func TestRefusedTasks(t *testing.T) {
	virtual.Run(t, func(t *testing.T) {
		reply := &schemas.DecisionReply{Sticky: "a", Alive: true, Lists: []string{"l"}}
		g := &Registry{}
		g.Answered("order", reply)
		takes := func(want bool) {
			t.Helper()
			if g.TakesTasks("a", "l") != want || g.TakesTasks("a", "other") || g.TakesTasks("b", "l") {
				t.Errorf("got %v, want %v", !want, want)
			}
		}
		takes(true)
		g.Refused("a", false, time.Second)
		takes(false)
		time.Sleep(time.Second)
		takes(true)
		g.Refused("a", true, time.Second)
		time.Sleep(time.Minute)
		takes(false)
		g.Answered("order", reply)
		takes(true)
	})
}
