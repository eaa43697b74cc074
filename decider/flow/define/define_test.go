package define_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/machine"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/google/go-cmp/cmp"
)

// An error in each of the languages points at its place in the text of the flow.
func TestPlaces(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{
		{"- let x = ${a} + (1", "1:20: the let: the parenthesis is not closed"},
		{"- step: |-\n    let x = 1 ? 2", "1:9: the let:"}, // of a block text the beginning is told
		{"- log a ${b c}", "1:12: the expression:"},
		{"- log é ${b c}", "1:12: the expression:"}, // columns count characters
		{"- {type: let, variable: x, value: {a: ['${b c}']}}", "1:44: the expression:"},
		{"- if ${x} == ${y z} then log a", "1:17: the expression:"},
		{"- {step: no-op, timeout: '${a b}'}", "1:30: the expression:"},
		{"- {step: no-op, output: {a: '${b b}'}}", "1:33: the expression:"},
		{"- activity a with x = ${a b}", "1:26: the expression:"},
		{"lock: {name: '${a b}'}\nsteps: [no-op]", "1:18: the expression:"},
		{"lock: " + strings.Repeat("l", 257) + "\nsteps: [no-op]", "1:7: lock: 257 bytes; want 1 to 256"},
		{"- {type: workflow, lock: {name: '${x}', scope: " + strings.Repeat("s", 257) + "}, steps: [no-op]}", "1:48: the lock's scope: 257 bytes; want 1 to 256"},
		{"lock: \"a\\tb\"\nsteps: [no-op]", "1:7: lock: it has control characters"},
		{"- transform x = ${a} | trim | frob", `1:31: the transform: there is no transform "frob"`},
		{"- {type: transform, variable: x, transform: [trim, frob]}", `1:52: the transform: there is no transform "frob"`},
		{"- transform x = a | replace regex ( x", "1:35: the transform:"},
		{"- retry limit 5 backoff 1s frob", "1:28: the backoff:"},
		{"- retry limit 5 in", "1:19: the limit:"},
		{"- {type: retry, limit: [1, 2 of 1m]}", "1:30: the limit:"},
		{"- {step: foreach x in 1..2, concurrency: 50% +, do: 'log ${x}'}", "1:47: the concurrency:"},
		{"- {step: log x, condition: '${a b}'}", "1:32: the condition: the expression:"},
		{"- step: log x\n  condition:\n    target: ${a}\n    any:\n    - less-than: 3\n    - regex: '('", "6:14: the condition's any[1].regex:"},
		{"- step: log x\n  condition:\n    target: ${a b}", "3:16: the condition's target: the expression:"},
		{"- {step: log x, condition: {lss-than: 3}}", "1:39: the condition's lss-than: there is no such key"},
		{"- {step: no-op, on-error: [{step: log a, condition: {error-cause: {glob: [1]}}}]}", "1:74: the condition's error-cause.glob:"},
		{"- {step: set-state a = 1, require: {any: [{regex: '('}]}}", "1:51: the condition's any[0].regex:"},
		{"- {step: ssh ls, exit_code: {less-then: 2}}", "1:41: the condition's less-then:"},
		{"parameters: {a: {constraints: [{not: 1}, {any: [{lss-than: 3}]}]}}\nsteps: [no-op]", "1:60: the condition's any[0].lss-than: there is no such key"},
		{"- sleep 1x", `1:10: the duration "1x":`},
		{"retention: 5 frob\nsteps: [no-op]", `1:14: the retention "5 frob":`},
	} {
		_, err := define.Parse("f.yaml", []byte(tc.yaml), nil)
		all, ok := errors.AsType[model.Errors](err)
		if !ok || len(all) != 1 {
			t.Errorf("%s: got %v, want one error", tc.yaml, err)
			continue
		}
		if got := all[0].String(); !strings.HasPrefix(got, "f.yaml:"+tc.want) {
			t.Errorf("%s: got %s, want %s", tc.yaml, got, tc.want)
		}
		if !strings.HasSuffix(all[0].Excerpt, "^") {
			t.Errorf("%s: got the excerpt %q, want the place in it", tc.yaml, all[0].Excerpt)
		}
	}
}

// All errors of a text are told, whatever their language.
func TestAllErrors(t *testing.T) {
	_, err := define.Parse("f.yaml", []byte("- let x = (1\n- log ${a b}\n- frob\n- retry limit 5 backoff soon\n"), nil)
	all, _ := errors.AsType[model.Errors](err)
	var lines []int
	for _, e := range all {
		lines = append(lines, e.Line)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4}, lines); diff != "" {
		t.Errorf("-want +got\n%s\n%v", diff, err)
	}
}

// A text with an id is a step type. One that is wrong is judged as what it was meant to be.
func TestStepType(t *testing.T) {
	for _, tc := range []struct {
		yaml     string
		stepType bool
		wrong    []string
	}{
		{yaml: "name: a\nsteps: [no-op]"},
		{yaml: "- no-op"},
		{yaml: "id: apt\nsteps: [no-op]", stepType: true},
		{yaml: "id: apt\nshorthand: ${package}\nsteps: [no-op]", stepType: true},
		{yaml: "id: apt\nshorthand: ${package}\nsteps: [frob]", wrong: []string{"frob"}},
		{yaml: "id: apt\nsteps: [frob]", wrong: []string{"frob"}},
		{yaml: "id: log\nsteps: [no-op]", wrong: []string{"log"}},
		{yaml: "name: a\nsteps: [frob]", wrong: []string{"frob"}},
		{
			yaml:  "name: a\nsteps:\n- {step: set-state k = 1, require: {size: 1}}\n- {step: set-state l = 1, require: {regex: a}}",
			wrong: []string{"size", "regex"},
		},
		{yaml: "name: a\nsteps: [\"set-state k[x] = 1\", \"clear-state k[0].a\"]", wrong: []string{"\"x\" is no index", "\".a\" does not continue the part of a state key"}},
		{yaml: "name: a\nshorthand: ${package}\nsteps: [no-op]", wrong: []string{"shorthand is for step types"}},
	} {
		r, err := define.Parse("", []byte(tc.yaml), nil)
		all, _ := errors.AsType[model.Errors](err)
		switch {
		case len(tc.wrong) == 0 && (err != nil || r.StepType != tc.stepType):
			t.Errorf("%s: got %+v, %v, want a step type: %v", tc.yaml, r, err, tc.stepType)
		case len(all) != len(tc.wrong):
			t.Errorf("%s: got %v, want %d errors", tc.yaml, err, len(tc.wrong))
		}
		for i, e := range all {
			if !strings.Contains(e.Problem, tc.wrong[i]) {
				t.Errorf("%s: got %s, want it to tell of %s", tc.yaml, e, tc.wrong[i])
			}
		}
	}
}

func known(types ...*model.Definition) define.Registry {
	return func(name string) (*model.Definition, bool) {
		i := slices.IndexFunc(types, func(d *model.Definition) bool { return d.ID == name })
		if i < 0 {
			return nil, false
		}
		return types[i], true
	}
}

// A registered type is taken into the definition, with those that it uses.
func TestTypes(t *testing.T) {
	inner, err := define.Parse("", []byte("id: inner\nsteps: [no-op]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	outer, err := define.Parse("", []byte("id: outer\nshorthand: ${x}\nsteps: [inner]"), known(inner.Definition))
	if err != nil {
		t.Fatal(err)
	}
	flow, err := define.Parse("", []byte("- outer 5"), known(outer.Definition))
	if err != nil {
		t.Fatal(err)
	}
	if flow.StepType || flow.Types["outer"] == nil || flow.Types["inner"] == nil {
		t.Errorf("got %+v, want a flow with both types", flow.Types)
	}
	if flow.Steps[0].Inputs["x"] == nil {
		t.Errorf("got %v, want the input of the shorthand", flow.Steps[0].Inputs)
	}
}

// What the model allows and no run could begin is refused too, at its step.
func TestWhatCannotRun(t *testing.T) {
	_, err := define.Parse("f", []byte("- no-op\n- {type: transform, value: 1, transform: [return, trim]}"), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "f:2:4: the transform: nothing may follow return (put it last)\n") {
		t.Errorf("got %v, want an error at the second step", err)
	}
}

// What is allowed but hardly meant is told with its place, once.
func TestWarnings(t *testing.T) {
	install, err := define.Parse("", []byte("id: install\nparameters: {package: string}\nsteps: [no-op]"), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := define.Parse("f", []byte("- type: install\n  colour: red\n"), known(install.Definition))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0].String(), `f:2:3: install has no parameter "colour"`) {
		t.Errorf("got %v, want one at its key", r.Warnings)
	}
}

// Whatever the text is, it ends in errors with places or in what can run.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"- let x = ${a} + 1", "id: apt\nshorthand: ${p}\nsteps: [log ${p}]", "- {step: log x, condition: {any: [{regex: '('}]}}", "a: &a [*a]",
		"- transform x = ${a} | trim | first", "- {step: foreach x in 1..3, concurrency: max(1, 50%), do: sleep 1s}", "- retry limit 2 in 1m backoff 1s",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := define.Parse("f", text, nil)
		if err != nil {
			if all, ok := errors.AsType[model.Errors](err); !ok || len(all) == 0 {
				t.Fatalf("got %v, want errors of the model", err)
			}
			return
		}
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		d, err := model.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Compile(d); err != nil {
			t.Fatalf("it is accepted and cannot run: %v", err)
		}
	})
}
