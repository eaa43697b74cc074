package model_test

import (
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// What was stored is checked as far as the interpreter relies on it.
func TestDecodeRefuses(t *testing.T) {
	const head, tail = `{"drover_flow":1,"definition":{"steps":[`, `]}}`
	for _, tc := range []struct{ name, data, want string }{
		{"nothing", "", "read the stored definition"},
		{"another format", `{"drover_flow":2,"definition":{}}`, "format 2, this drover reads 1: upgrade it"},
		{"no definition", `{"drover_flow":1}`, "format 1"},
		{"an unknown field", `{"drover_flow":1,"definition":{"speed":1}}`, `unknown field "speed"`},
		{"more", `{"drover_flow":1,"definition":{}} x`, "something follows"},
		{"a bad retention", `{"drover_flow":1,"definition":{"retention":"any(1)"}}`, "any"},
		{"an unknown type", head + `{"ref":"0","type":"frob"}` + tail, `the step at 0 has the unknown type "frob"`},
		{"an alias", head + `{"ref":"0","type":"set-sensor"}` + tail, "unknown type"},
		{"a null step", head + `null` + tail, "the step at 0"},
		{"a wrong ref", head + `{"ref":"1","type":"no-op"}` + tail, "the step at 0"},
		{"a wrong ref below", head + `{"ref":"0","type":"subworkflow","block":[{"ref":"0.0","type":"no-op"}]}` + tail, "the step at 0.steps.0"},
		{"if without a step", head + `{"ref":"0","type":"if"}` + tail, `the step at 0 of type "if": block`},
		{"if with both", head + `{"ref":"0","type":"if","then":{"ref":"0.then","type":"no-op"},"block":[{"ref":"0.steps.0","type":"no-op"}]}` + tail, "block"},
		{"switch without cases", head + `{"ref":"0","type":"switch"}` + tail, "cases"},
		{"log with a block", head + `{"ref":"0","type":"log","block":[{"ref":"0.steps.0","type":"no-op"}]}` + tail, "block"},
		{"foreach without a body", head + `{"ref":"0","type":"foreach","loop":{"target":[],"var":"x"}}` + tail, "nested"},
		{"foreach without a loop", head + `{"ref":"0","type":"foreach","nested":{"output":1}}` + tail, "loop"},
		{"a loop without a workflow", head + `{"ref":"0","type":"workflow","loop":{"target":[],"var":"x"}}` + tail, "loop"},
		{"types within", head + `{"ref":"0","type":"workflow","nested":{"output":1,"types":{"a":{"output":1}}}}` + tail, "nested workflow at 0"},
		{"a handler beside a workflow", head + `{"ref":"0","type":"workflow","nested":{"output":1},"on_error":[{"ref":"0.on-error.0","type":"no-op"}]}` + tail, "nested workflow at 0"},
		{"a null type", `{"drover_flow":1,"definition":{"types":{"a":null}}}`, `the step type "a"`},
		{"a type of ours", `{"drover_flow":1,"definition":{"types":{"log":{"output":1}}}}`, `the step type "log"`},
		{"a type in a type", `{"drover_flow":1,"definition":{"types":{"a":{"output":1,"types":{"b":{"output":1}}}}}}`, `the step type "a"`},
		{"a bad type", `{"drover_flow":1,"definition":{"types":{"a":{"steps":[null]}}}}`, `step type a: the step at 0`},
		{"a type that uses itself", `{"drover_flow":1,"definition":{"types":{"a":{"steps":[{"ref":"0","type":"b"}]},"b":{"steps":[{"ref":"0","type":"a"}]}}}}`, "comes to use itself"},
		{"a number that does not fit", `{"drover_flow":1,"definition":{"output":9223372036854775808}}`, "a number does not fit"},
		{"deep values", `{"drover_flow":1,"definition":{"output":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}}`, "too deep"},
		{"very deep values", `{"drover_flow":1,"definition":{"output":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}}`, "read the stored definition"},
		{"deep steps", `{"drover_flow":1,"definition":{"steps":[` + deepSteps(40) + `]}}`, "nested too deep"},
		{"many steps", head + strings.Repeat(`{"ref":"0","type":"no-op"},`, 1) + manySteps(1001) + tail, "the step at 1"},
		{"too much", strings.Repeat(" ", 17<<20), "more than 16777216"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d, err := model.Decode([]byte(tc.data)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v, want %s", d, err, tc.want)
			}
		})
	}
}

func deepSteps(levels int) string {
	s, ref := "", "0"
	for range levels {
		s += `{"ref":"` + ref + `","type":"subworkflow","block":[`
		ref += ".steps.0"
	}
	return s + `{"ref":"` + ref + `","type":"no-op"}` + strings.Repeat("]}", levels)
}

func manySteps(n int) string {
	return strings.TrimSuffix(strings.Repeat(`{"ref":"0","type":"no-op"},`, n), ",")
}

// Values come back as they were: 1.0 is no 1.
func TestStoredValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var value func(depth int) any
		value = func(depth int) any {
			switch kind := rapid.IntRange(0, 7).Draw(t, "kind"); {
			case kind == 0:
				return nil
			case kind == 1:
				return rapid.Bool().Draw(t, "bool")
			case kind == 2:
				return rapid.Int64().Draw(t, "int")
			case kind == 3:
				return rapid.Float64Range(-1e300, 1e300).Draw(t, "float")
			case kind == 4:
				return float64(rapid.Int32().Draw(t, "whole float"))
			case kind == 5 || depth == 0:
				return rapid.String().Draw(t, "text")
			case kind == 6:
				l := []any{}
				for range rapid.IntRange(0, 3).Draw(t, "length") {
					l = append(l, value(depth-1))
				}
				return l
			}
			m := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(t, "size") {
				m[rapid.String().Draw(t, "key")] = value(depth - 1)
			}
			return m
		}
		d := &model.Definition{
			Input:      map[string]any{"a": value(3)},
			Output:     value(3),
			Condition:  value(2),
			Parameters: map[string]model.Parameter{"p": {Default: value(2), Constraints: []any{value(2)}}},
			Steps: []*model.Step{{
				Ref: "0", Type: "workflow", Inputs: map[string]any{"b": value(2)}, Condition: value(2), Output: value(2), Metadata: value(2),
				Nested: &model.Definition{Output: value(2)}, Loop: &model.Loop{Target: value(2), Var: "x", Reducing: map[string]any{"y": value(2)}},
			}},
		}
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := model.Decode(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if diff := cmp.Diff(d, back); diff != "" {
			t.Fatalf("%s: -want +got\n%s", data, diff)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"drover_flow":1,"definition":{"steps":[{"ref":"0","type":"if","then":{"ref":"0.then","type":"log"}}],"types":{"a":{"output":1.0}}}}`))
	f.Add([]byte(`{"drover_flow":1,"definition":{"retention":"max(1d, 5)","lock":{"name":"a"},"steps":[{"ref":"0","type":"foreach","loop":{"target":[],"var":"x"},"nested":{"output":1}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := model.Decode(data)
		if err != nil {
			return
		}
		first, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := model.Decode(first)
		if err != nil || again.Version() != d.Version() {
			t.Fatalf("%s: %v", first, err)
		}
	})
}
