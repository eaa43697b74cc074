package machine_test

import (
	"slices"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// A preview says of each step that has run whether it may simply run again, and of one with runs of its own whether all in those may.
func TestWhatIsRisky(t *testing.T) {
	const all = "idempotent: all\n"
	for _, c := range []struct {
		flow, step string
		risky      bool
	}{
		{"", "activity a", true},
		{"", "{step: activity a, idempotent: yes}", false},
		{"", "no-op", false},
		{"", "{step: no-op, idempotent: no}", true},
		{"", "{type: subworkflow, steps: [activity a]}", false}, // its steps are told of by themselves
		{"", "child other", true},
		{"", "shell ls", true},
		{all, "activity a", false},
		{all, "child other", false},
		{all, "{step: activity a, idempotent: no}", true},
		{"", "{type: workflow, steps: [no-op]}", false},
		{"", "{type: workflow, steps: [activity a]}", true},
		{"", "{type: workflow, steps: [no-op, {step: activity a, idempotent: yes}]}", false},
		{"", "{type: workflow, steps: [{step: no-op, idempotent: no}]}", true},
		{"", "{type: workflow, steps: [child other]}", true},
		{"", "{type: workflow, steps: [shell ls]}", true},
		{"", "{type: workflow, steps: [{step: shell ls, idempotent: yes}]}", false},
		{"", "{type: workflow, steps: [{type: subworkflow, steps: [activity a]}]}", true},
		{"", "{type: workflow, steps: [{type: workflow, steps: [no-op]}]}", false},
		{"", "{type: workflow, steps: [{type: workflow, steps: [no-op]}, {type: workflow, steps: [activity a]}]}", true},
		{"", "{type: workflow, idempotent: yes, steps: [activity a]}", false},
		{"", "{type: workflow, idempotent: all, steps: [activity a, {type: workflow, steps: [activity b]}]}", false},
		{"", "{type: workflow, idempotent: all, steps: [{step: activity a, idempotent: no}]}", true},
		{"", "{type: workflow, idempotent: all, steps: [{step: fail message x, condition: {equals: never}}]}", true},
		{all, "{type: workflow, steps: [activity a, child other, shell ls]}", false},
		{all, "{type: workflow, steps: [{type: workflow, steps: [activity a]}]}", false},
		{all, "{type: workflow, steps: [{type: workflow, steps: [{step: activity a, idempotent: no}]}]}", true},
	} {
		p := part(t, compile(t, c.flow+"steps:\n- {step: no-op, replayable: from here}\n- "+c.step+"\n"), "")
		s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
		for err == nil && !s.Status.Ended() {
			var in []machine.Input
			for _, a := range actions {
				if a.Do == machine.Schedule || a.Do == machine.StartChild {
					in = append(in, machine.Input{Kind: machine.Result, ID: a.ID})
				}
			}
			if len(in) == 0 {
				t.Fatalf("%s%s: got %+v, which nothing answers", c.flow, c.step, actions)
			}
			actions, err = machine.Step(p, s, in, begin, half)
		}
		if err != nil || s.Status != run.Succeeded {
			t.Fatalf("%s%s: got %s, %v", c.flow, c.step, s.Status, err)
		}
		state, err := run.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := machine.Preview(p, machine.Origin{State: state, From: "0"})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Again, func(a machine.Again) bool { return a.Ref == "1" })
		if i < 0 || r.Again[i].Risky != c.risky {
			t.Errorf("%s%s: got %+v, want risky=%v", c.flow, c.step, r.Again, c.risky)
		}
	}
}
