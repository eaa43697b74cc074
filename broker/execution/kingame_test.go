package execution

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/droverhq/drover/schemas"
)

// Random families: workflows that start one another, signal, cancel, continue and end in any order, with letters that take
// their time and owners that do things twice. All histories must agree, and when the letters are delivered nothing is left
// to do.
func TestFamilies(t *testing.T) { // S1-24, S1-25, P-4, P-5, P-6
	rapid.Check(t, func(t *rapid.T) {
		g := familyGame{T: t, family: newFamily(t.Fatalf)}
		g.holdUp = func() bool { return rapid.IntRange(0, 4).Draw(t, "late") == 0 }
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			g.turn()
		}
		g.settle()
		if rapid.Bool().Draw(t, "replaced") { // everybody's owner, at last
			for _, s := range g.all() {
				g.again(s)
			}
		}
		g.over()
	})
}

type familyGame struct {
	*rapid.T
	*family
	n int
}

// member draws a workflow id: of a family that is there, or one of the roots.
func (g *familyGame) member() string {
	ids := []string{"a", "b", "c"}
	for id := range g.last {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return rapid.SampledFrom(ids).Draw(g.T, "who")
}

func (g *familyGame) all() (runs []*State) {
	for _, run := range slices.Sorted(maps.Keys(g.runs)) {
		runs = append(runs, g.runs[run])
	}
	return runs
}

var policies = []schemas.ChildPolicy{"", schemas.ChildTerminate, schemas.ChildRequestCancel, schemas.ChildAbandon}

func (g *familyGame) limit() schemas.Duration {
	return schemas.Duration(rapid.SampledFrom([]int64{0, 0, 5e9}).Draw(g.T, "limit"))
}

func (g *familyGame) policy() schemas.ChildPolicy {
	return rapid.SampledFrom(policies).Draw(g.T, "policy")
}

func (g *familyGame) turn() {
	if to := slices.Sorted(maps.Keys(g.mail)); len(to) > 0 && rapid.Bool().Draw(g.T, "deliver") {
		g.deliver(rapid.SampledFrom(to).Draw(g.T, "to"))
		return
	}
	if n := len(g.late); n > 0 && rapid.Bool().Draw(g.T, "release") {
		g.release(rapid.IntRange(0, n-1).Draw(g.T, "which"))
		return
	}
	id := g.member()
	s := g.last[id]
	g.n++
	if s == nil || s.Closed() {
		g.begin(&schemas.StartRequest{WorkflowID: id, Run: fmt.Sprint(id, "-", g.n), Type: "T", ChildPolicy: g.policy(), ExecutionStartToCloseTimeout: g.limit()})
		return
	}
	switch rapid.IntRange(0, 12).Draw(g.T, "turn") {
	case 0:
		g.step(s, Signal{Name: "s", RequestID: fmt.Sprint("q", g.n)})
	case 1:
		g.step(s, Cancel{Request: &schemas.ExecutionRequest{RequestID: fmt.Sprint("q", g.n)}})
	case 2:
		g.step(s, Terminate{Request: &schemas.ExecutionRequest{ChildPolicy: g.policy()}})
	case 3:
		g.again(rapid.SampledFrom(g.all()).Draw(g.T, "again"))
	case 4:
		g.now += 10e9
		g.step(s, AlarmFired{})
	case 5, 6:
		g.lockNews(s)
	default:
		g.step(s, Signal{Name: "wake"})
		for {
			g.decideAmid(id, g.amid(), g.decisions(id)...)
			if rapid.IntRange(0, 3).Draw(g.T, "enough") == 0 || g.last[id].Closed() {
				return
			}
		}
	}
}

// amid draws what comes while a decider decides.
func (g *familyGame) amid() (came []Message) {
	for range rapid.IntRange(0, 2).Draw(g.T, "amid") {
		g.n++
		came = append(came, Signal{Name: "amid", RequestID: fmt.Sprint("a", g.n)})
	}
	return came
}

// decisions draws a reply.
func (g *familyGame) decisions(id string) (all []schemas.DecisionAttributes) {
	for range rapid.IntRange(0, 2).Draw(g.T, "decisions") {
		to, run := g.member(), ""
		if s := g.last[to]; s != nil && rapid.Bool().Draw(g.T, "named") {
			run = s.Run
		}
		tell := rapid.Bool().Draw(g.T, "tell")
		switch rapid.IntRange(0, 3).Draw(g.T, "decision") {
		case 0:
			g.n++
			all = append(all, &schemas.StartChild{WorkflowID: fmt.Sprint("child", g.n), WorkflowType: "T", Input: schemas.Text(to), ChildPolicy: g.policy(), ExecutionStartToCloseTimeout: g.limit(), Tell: tell})
		case 1:
			all = append(all, &schemas.SignalExternal{WorkflowID: to, Run: run, SignalName: "hello", Input: schemas.Text(to), Tell: tell})
		case 2:
			all = append(all, &schemas.CancelExternal{WorkflowID: to, Run: run, Tell: tell})
		case 3:
			all = append(all, g.lockDecisions(id))
		}
	}
	switch rapid.IntRange(0, 9).Draw(g.T, "end") {
	case 0:
		all = append(all, &schemas.CompleteWorkflow{Result: schemas.Text("out")})
	case 1:
		all = append(all, &schemas.FailWorkflow{Reason: "why", Details: schemas.Text("how")})
	case 2:
		all = append(all, &schemas.CancelWorkflow{Details: schemas.Text("how")})
	case 3, 4:
		all = append(all, &schemas.ContinueAsNew{Input: schemas.Text("next")})
	}
	return all
}
