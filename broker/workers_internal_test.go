package broker

import (
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/internal/virtual"
	"github.com/droverhq/drover/schemas"
)

// turns are who gets the next first tasks of type order; "-" is the shared queue.
func turns(g *workerRegistry, n int) string {
	var all []string
	for range n {
		name := "-"
		if w := g.first("order"); w != nil {
			name = w.name
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func registryOf(names ...string) *workerRegistry {
	g := &workerRegistry{}
	for _, name := range names {
		g.answered("order", &schemas.DecisionReply{Sticky: name, Alive: true})
	}
	return g
}

// The least recently used gets the first task, be it a live worker of the type or the shared queue.
func TestLeastRecentlyUsedWorker(t *testing.T) {
	for name, c := range map[string]struct {
		names  []string
		before func(g *workerRegistry)
		want   string
	}{
		"nobody is known": {want: "- - - -"},
		"one":             {names: []string{"a"}, want: "- a - a"},
		"one that hangs": {
			names: []string{"a"}, before: func(g *workerRegistry) { g.byName["a"].overdue = true }, want: "- - - -",
		},
		"one that is not heard": {
			names: []string{"a", "b"}, before: func(g *workerRegistry) { g.notHeard("a", "order") }, want: "- b - b",
		},
		"one that is heard again": {
			names: []string{"a"}, want: "- a - a", before: func(g *workerRegistry) {
				g.notHeard("a", "order")
				g.answered("order", &schemas.DecisionReply{Sticky: "a", Alive: true})
			},
		},
		"one of another type": {
			names: []string{"a"}, want: "- a - a", before: func(g *workerRegistry) {
				g.answered("other", &schemas.DecisionReply{Sticky: "b", Alive: true})
			},
		},
		"one that has left": {
			names: []string{"a", "b"}, before: func(g *workerRegistry) { g.leave("a") }, want: "- b - b",
		},
		"a stranger has answered": {
			names: []string{"a"}, want: "- a - a", before: func(g *workerRegistry) {
				turns(g, 1)
				g.stranger("order")
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
		g.leave("a")
		reply := &schemas.DecisionReply{Sticky: "a", Alive: true}
		if got := g.answered("order", reply); got != "" || g.number("a") != 0 {
			t.Errorf("a worker that has left wants the next tasks, as %q", got)
		}
		time.Sleep(leftFor)
		if got := g.answered("order", reply); got != "a" || g.numbered(g.number("a")) == nil {
			t.Errorf("got %q, want that it is known again", got)
		}
	})
}
