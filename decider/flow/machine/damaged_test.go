package machine_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// A state that no step leaves is refused with a reason, whatever it is about to hear: what runs on it relies on what was checked. FuzzState looks
// for a panic; here it is that each damage is seen by itself.
func TestDamagedStates(t *testing.T) {
	p := part(t, compile(t, `
steps:
- type: subworkflow
  steps:
  - activity a
  on-error: [activity b]
- {type: switch, value: true, cases: [{step: activity c, condition: true}, no-op]}
- {type: foreach, target: 1..2, target_var_name: i, steps: [no-op]}
- {id: gone, step: fail message oh}
on-error:
- activity d
`), "")
	in := map[string][]machine.Input{"block": nil}
	in["handler"] = []machine.Input{{Kind: machine.Failed, ID: "0.steps.0#1", Failure: run.NewFailure("oh", "no")}}
	in["case"] = append(in["handler"][:1:1], machine.Input{Kind: machine.Result, ID: "0.on-error.0#1"})
	in["loop"] = append(in["case"][:2:2], machine.Input{Kind: machine.Result, ID: "1.cases.0#1"})
	in["end"] = append(in["loop"][:3:3], machine.Input{Kind: machine.Result, ID: "2#1/0"}, machine.Input{Kind: machine.Result, ID: "2#1/1"})
	at := func(where string) *run.State {
		s, _, err := machine.Start(p, machine.Begin{}, begin, half)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Step(p, s, in[where], begin, half); err != nil {
			t.Fatal(err)
		}
		return s
	}
	top := func(s *run.State) *run.Frame { return &s.Stack[len(s.Stack)-1] }
	for name, c := range map[string]struct {
		where  string
		damage func(s *run.State)
		want   string
	}{
		"status":               {"block", func(s *run.State) { s.Status = "asleep" }, "status"},
		"another flow":         {"block", func(s *run.State) { s.Records["9"] = &run.Record{} }, "another version"},
		"no record":            {"block", func(s *run.State) { s.Records["0"] = nil }, `record of step "0"`},
		"starts":               {"block", func(s *run.State) { s.Records["0"].Started = -1 }, `record of step "0"`},
		"number":               {"block", func(s *run.State) { s.Records["0"].Last.N = -1 }, `record of step "0"`},
		"tries":                {"block", func(s *run.State) { s.Records["0"].Last.Try = -1 }, `record of step "0"`},
		"polls":                {"block", func(s *run.State) { s.Records["0"].Last.Polls = -1 }, `record of step "0"`},
		"timeouts":             {"block", func(s *run.State) { s.Records["0"].Last.Armed = -1 }, `record of step "0"`},
		"limit":                {"block", func(s *run.State) { s.Records["0"].Last.Limit = -1 }, `record of step "0"`},
		"width":                {"loop", func(s *run.State) { s.Records["2"].Last.Width = -1 }, `record of step "2"`},
		"no child":             {"loop", func(s *run.State) { s.Records["2"].Last.Children[1] = nil }, `record of step "2"`},
		"child without fault":  {"loop", func(s *run.State) { s.Records["2"].Last.Children[1].Status = "failed" }, `record of step "2"`},
		"trial":                {"block", func(s *run.State) { s.Trial = &run.Instance{N: -1} }, "damaged instance"},
		"no steps":             {"block", func(s *run.State) { s.Stack = nil }, "no steps"},
		"depth":                {"block", func(s *run.State) { s.Stack = append(s.Stack, make([]run.Frame, machine.MaxDepth)...) }, "no steps"},
		"block first":          {"block", func(s *run.State) { s.Stack = s.Stack[1:] }, "no steps"},
		"handler first":        {"end", func(s *run.State) { s.Stack = s.Stack[1:] }, "no steps"},
		"steps within":         {"block", func(s *run.State) { top(s).Kind = "steps" }, "wrong order"},
		"workflow handler":     {"handler", func(s *run.State) { s.Stack = append(s.Stack, *top(s)); top(s).Kind = "workflow-handler" }, "wrong order"},
		"kind":                 {"block", func(s *run.State) { top(s).Kind = "queue" }, `kind "queue"`},
		"unknown step":         {"block", func(s *run.State) { top(s).Ref = "9" }, "another version"},
		"another step's":       {"block", func(s *run.State) { top(s).Ref = "2" }, "another version"},
		"a case of a block":    {"block", func(s *run.State) { top(s).Kind = "case" }, "another version"},
		"a block of a switch":  {"case", func(s *run.State) { top(s).Kind = "block" }, "another version"},
		"then of a block":      {"block", func(s *run.State) { top(s).Kind = "then" }, "another version"},
		"place":                {"block", func(s *run.State) { top(s).Index = 2 }, "place 2 of 1"},
		"place of a case":      {"case", func(s *run.State) { top(s).Index = 2 }, "place 2 of 1"},
		"place of a handler":   {"handler", func(s *run.State) { top(s).Index = 2 }, "place 2 of 1"},
		"place of the run's":   {"end", func(s *run.State) { top(s).Index = 2 }, "place 2 of 1"},
		"place of steps":       {"end", func(s *run.State) { s.Stack[0].Index = 5 }, "place 5 of 4"},
		"place below":          {"block", func(s *run.State) { top(s).Index = -1 }, "place -1 of 1"},
		"handler of no error":  {"handler", func(s *run.State) { top(s).Failure = nil }, "no error"},
		"handler of no step":   {"handler", func(s *run.State) { top(s).From = "9" }, "no error"},
		"list of a later step": {"block", func(s *run.State) { s.Stack[0].Index = 1 }, "elsewhere"},
		"list after the end":   {"block", func(s *run.State) { s.Stack[0].Index = 4 }, "elsewhere"},
		"block without record": {"block", func(s *run.State) { delete(s.Records, "0") }, "elsewhere"},
		"step without record":  {"block", func(s *run.State) { delete(s.Records, "0.steps.0") }, "no record"},
		"wait of nobody":       {"block", func(s *run.State) { top(s).Index = 1 }, "no step does"},
		"wait before a step":   {"block", func(s *run.State) { s.Entered = false }, "no step does"},
		"wait for work":        {"block", func(s *run.State) { s.Entered, s.Trial = false, &run.Instance{} }, "no step does"},
		"wait without trial":   {"block", func(s *run.State) { s.Entered, s.Wait.For = false, machine.ReadState }, "no step does"},
	} {
		s := at(c.where)
		if _, err := machine.Step(p, s, nil, begin, half); err != nil || s.Wait == nil {
			t.Fatalf("%s: got %v and the wait %+v, want a sound state at %s", name, err, s.Wait, c.where)
		}
		c.damage(s)
		if _, err := machine.Step(p, s, nil, begin, half); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a refusal with %q", name, err, c.want)
		}
	}
}
