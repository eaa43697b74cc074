package model_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files; review the difference")

// registry knows the step types of testdata/types.
func registry(t testing.TB) func(string) (*model.Definition, bool) {
	t.Helper()
	all := map[string]*model.Definition{}
	files, err := filepath.Glob("testdata/types/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got no step types: %v", err)
	}
	find := func(name string) (*model.Definition, bool) { d, ok := all[name]; return d, ok }
	for _, file := range files {
		d, err := model.Parse(file, read(t, file), &model.Options{StepType: true, Types: find})
		if err != nil {
			t.Fatal(err)
		}
		all[d.ID] = d
	}
	return find
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t testing.TB, text string) *model.Definition {
	t.Helper()
	d, err := model.Parse("flow.yaml", []byte(text), &model.Options{Types: registry(t)})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return d
}

// golden compares with a file, or rewrites it.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read(t, file)), string(got)); diff != "" {
		t.Errorf("%s: -want +got, rewrite with -update\n%s", file, diff)
	}
}

// A0-17: the examples of the language, as they are written.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("testdata/examples/*.yaml")
	if err != nil || len(files) < 9 {
		t.Fatalf("got %d examples, %v", len(files), err)
	}
	types := registry(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			d, err := model.Parse(file, read(t, file), &model.Options{Types: types})
			if err != nil {
				t.Fatal(err)
			}
			data, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			back, err := model.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d, back); diff != "" {
				t.Errorf("stored and read back: -want +got\n%s", diff)
			}
			var shown any
			if err := json.Unmarshal(data, &shown); err != nil {
				t.Fatal(err)
			}
			pretty, err := json.MarshalIndent(shown, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.Replace(strings.TrimSuffix(file, ".yaml"), "examples", "golden", 1)+".json", append(pretty, '\n'))
		})
	}
}

// placelessJSON is a step or definition without what all have: their places.
func placelessJSON(t *testing.T, of any) string {
	t.Helper()
	data, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	data, err = json.Marshal(placeless(v))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data))
}

func placeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "pos")
		if v["type"] != nil {
			delete(v, "ref")
		}
		for k := range v {
			v[k] = placeless(v[k])
		}
	case []any:
		for i := range v {
			v[i] = placeless(v[i])
		}
	}
	return v
}

func asErrors(t *testing.T, err error) model.Errors {
	t.Helper()
	all, ok := errors.AsType[model.Errors](err)
	if !ok || len(all) == 0 {
		t.Fatalf("got %v (%T), want Errors", err, err)
	}
	if one, ok := errors.AsType[*model.Error](err); !ok || one != all[0] {
		t.Errorf("got %v, want the first of Errors by errors.As", one)
	}
	return all
}

func TestRefsAndFind(t *testing.T) {
	d := parse(t, `
steps:
- if: no
  step: if ${a} then log yes
- step: switch ${x}
  cases:
  - condition: 1
    step: log one
  - steps:
    - no-op
- type: workflow
  steps:
  - foreach x in 1..2 do log ${x}
  on-error:
  - retry limit 2
- step: if ${b}
  steps:
  - [log a, log b]
- step: fail
  on-error:
  - step: log failed
    on-error: log twice
on-error: log over
`)
	var refs []string
	for s := range d.All() {
		refs = append(refs, s.Ref+" "+s.Type)
	}
	want := []string{
		"0 if", "0.then log",
		"1 switch", "1.cases.0 log", "1.cases.1 subworkflow", "1.cases.1.steps.0 no-op",
		"2 workflow", "2.steps.0 foreach", "2.steps.0.steps.0 log", "2.on-error.0 retry",
		"3 if", "3.steps.0 subworkflow", "3.steps.0.steps.0 log", "3.steps.0.steps.1 log",
		"4 fail", "4.on-error.0 log", "4.on-error.0.on-error.0 log",
		"on-error.0 log",
	}
	if diff := cmp.Diff(want, refs); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for range d.All() {
		break // an iterator bears being left
	}
}

func TestVersion(t *testing.T) {
	a := parse(t, "name: x\nsteps:\n- log a\n- {type: sleep, duration: 1s}\n")
	b := parse(t, "# other layout\nsteps:\n\n  - log   a\n  - duration: 1s # and order\n    type: sleep\nname: x\n")
	c := parse(t, "name: x\nsteps:\n- log b\n- {type: sleep, duration: 1s}\n")
	if a.Version() != b.Version() || a.Version() == c.Version() || len(a.Version()) != 32 {
		t.Errorf("got %s, %s, %s", a.Version(), b.Version(), c.Version())
	}
	uses := parse(t, "- apt-get x")
	other := *uses.Types["apt-get"]
	other.Lock = nil
	uses2, err := model.Parse("", []byte("- apt-get x"), &model.Options{Types: func(string) (*model.Definition, bool) { return &other, true }})
	if err != nil || uses.Version() == uses2.Version() {
		t.Errorf("got %v, and one version for two versions of a type", err)
	}
}
