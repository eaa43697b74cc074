package machine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/run"
)

// stuck is a flow whose inner run stands at a step that may not run again, and what that run has left.
func stuck(t *testing.T, text string) (p *machine.Program, inner []byte, f *run.Failure) {
	t.Helper()
	flow := compile(t, text)
	p = part(t, flow, "")
	_, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil || len(actions) == 0 || actions[len(actions)-1].Do != machine.StartChild {
		t.Fatalf("got %+v, %v, want an inner run", actions, err)
	}
	child := part(t, flow, actions[len(actions)-1].Child.Program)
	s, _, err := machine.Start(child, machine.Begin{Program: actions[len(actions)-1].Child.Program}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	f = run.NewFailure("boom", "it failed")
	if _, err := machine.Step(child, s, []machine.Input{{Kind: machine.Failed, ID: "0#1", Failure: f}}, begin, half); err != nil {
		t.Fatal(err)
	}
	inner, err = run.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return p, inner, f
}

// Inner runs handed any state on once, and it stays in the contexts of the runs around them. One that cannot go on counts as none: it
// was resumed, and failed in a new run, where the replay was to be refused, or to begin elsewhere.
func TestStateThatCannotGoOn(t *testing.T) {
	const inner = "{step: workflow, %steps: [activity pay]}\n"
	for name, tc := range map[string]struct {
		text, from, refused, step string
		force                     bool
		damaged                   bool
	}{
		"no point":  {text: "steps:\n- " + inner, from: "end", refused: "step 0 (workflow) may not run twice"},
		"damaged":   {text: "steps:\n- " + inner, from: "end", refused: "step 0 (workflow) may not run twice", damaged: true},
		"a point":   {text: "steps:\n- {step: no-op, replayable: from here}\n- " + inner, from: "end", step: "0"},
		"by force":  {text: "steps:\n- " + inner, from: "end", force: true, step: "0"},
		"by itself": {text: "steps:\n- " + strings.Replace(inner, "%", "idempotent: yes, ", 1), from: "end", step: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			p, left, f := stuck(t, strings.ReplaceAll(tc.text, "%", ""))
			if tc.damaged {
				left = []byte(`{"drover_run":1,"status":"failed"}`)
			}
			s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
			if err != nil {
				t.Fatal(err)
			}
			id := actions[len(actions)-1].ID
			if _, err = machine.Step(p, s, []machine.Input{{Kind: machine.Failed, ID: id, Failure: f, State: left}}, begin, half); err != nil {
				t.Fatal(err)
			}
			state, err := run.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			o := machine.Origin{State: state, From: tc.from, Force: tc.force}
			r, err := machine.Preview(p, o)
			if tc.refused != "" {
				refused, ok := errors.AsType[*run.Failure](err)
				if !ok || !refused.Has(run.NameReplay) || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %+v, %v, want a refusal: %s", r, err, tc.refused)
				}
				return
			}
			if err != nil || r.From != tc.step {
				t.Fatalf("got %+v, %v, want a replay from %s", r, err, tc.step)
			}
			_, actions, err = machine.Start(p, machine.Begin{Replay: &o}, begin, half)
			if err != nil || len(actions) == 0 {
				t.Fatalf("got %+v, %v, want the inner run again", actions, err)
			}
			if a := actions[len(actions)-1]; a.Do != machine.StartChild || a.Child.Replay != nil {
				t.Errorf("got %+v, want the inner run begun anew", a)
			}
		})
	}
}

// A retry asks the same as a replay.
func TestRetryOfStateThatCannotGoOn(t *testing.T) {
	p, left, f := stuck(t, "steps:\n- {type: subworkflow, steps: [{step: workflow, steps: [activity pay]}], on-error: [retry limit 3]}\n")
	s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	actions, err = machine.Step(p, s, []machine.Input{{Kind: machine.Failed, ID: actions[0].ID, Failure: f, State: left}}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range actions {
		if a.Do == machine.StartChild {
			t.Errorf("it began a run that fails at once: %+v", a)
		}
	}
	if s.Status != run.Broke || !s.Failure.Has(run.NameReplay) || !s.Failure.Has("boom") {
		t.Errorf("the flow has %s with %+v, want it failed as not replayable because of boom", s.Status, s.Failure)
	}
}

// A run within a step that was resumed, and had not ended when the run around it did, went on from where it was resumed when that was
// replayed: what it had done since was done twice.
func TestStateFromBeforeTheEnd(t *testing.T) {
	p, left, f := stuck(t, `
steps:
- type: subworkflow
  steps:
  - {step: workflow, steps: [{step: activity find, idempotent: yes}, activity pay]}
  on-error: [retry limit 3]
`)
	for name, in := range map[string][]machine.Input{"ended by force": nil, "canceled": {{Kind: machine.Stop}}} {
		s, actions, err := machine.Start(p, machine.Begin{}, begin, half)
		if err != nil {
			t.Fatal(err)
		}
		actions, err = machine.Step(p, s, []machine.Input{{Kind: machine.Failed, ID: actions[0].ID, Failure: f, State: left}}, begin, half)
		if err != nil || len(actions) != 1 || actions[0].Child == nil || actions[0].Child.Replay == nil {
			t.Fatalf("got %+v, %v, want the inner run resumed", actions, err)
		}
		if _, err := machine.Step(p, s, in, begin, half); err != nil {
			t.Fatal(err)
		}
		state, err := run.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := machine.Preview(p, machine.Origin{State: state, From: "end"})
		if refused, ok := errors.AsType[*run.Failure](err); !ok || !refused.Has(run.NameReplay) {
			t.Errorf("%s: got %+v, %v, want a refusal: the inner run may have paid", name, r, err)
		}
	}
}

// One that held a lock has waited for the end of what it canceled, and knows where that stood.
func TestStateOfWhatWasCanceled(t *testing.T) {
	const text = "steps:\n- {step: workflow, steps: [{step: activity find, idempotent: yes}]}\n"
	_, left, f := stuck(t, text)
	p := part(t, compile(t, "lock: l\n"+text), "")
	s, _, err := machine.Start(p, machine.Begin{}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	_, err = machine.Step(p, s, []machine.Input{{Kind: machine.Granted, ID: "lock"}, {Kind: machine.Stop}, {Kind: machine.Result, ID: "9#1"}}, begin, half)
	if err != nil || s.Status != run.Stopping {
		t.Fatalf("got %s, %v, want a run that waits for the end of its inner run", s.Status, err)
	}
	if _, err := machine.Step(p, s, []machine.Input{{Kind: machine.Failed, ID: "0#1/0", Failure: f, State: left}}, begin, half); err != nil || s.Status != run.Canceled {
		t.Fatalf("got %s, %v, want it canceled", s.Status, err)
	}
	state, err := run.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	o := machine.Origin{State: state, From: "end"}
	s, _, err = machine.Start(p, machine.Begin{Replay: &o}, begin, half)
	if err != nil {
		t.Fatal(err)
	}
	actions, err := machine.Step(p, s, []machine.Input{{Kind: machine.Granted, ID: "lock"}}, begin, half)
	if err != nil || len(actions) != 1 || actions[0].Child == nil || actions[0].Child.Replay == nil {
		t.Errorf("got %+v, %v, want the inner run resumed", actions, err)
	}
}
