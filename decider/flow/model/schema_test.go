package model_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/droverhq/drover/decider/flow/model"
	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestSchemaGolden(t *testing.T) {
	golden(t, "testdata/flow.schema.json", model.Schema())
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(model.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("flow.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("flow.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asJSON(t *testing.T, text []byte) any {
	t.Helper()
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The schema takes what Parse takes.
func TestSchemaAccepts(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %d files, %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "vm.yaml" {
			continue // a line of it is no YAML to other readers
		}
		if err := s.Validate(asJSON(t, read(t, file))); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, text := range []string{
		"{type: let, variable: a.b, value: null}", "{type: let, variable: a, input: {value: 1}}", "{type: retry, replay: true}",
		"{type: retry, replay: force}", "{type: set-sensor, name: a, value: 1, require: {when: absent}}", "{type: goto, next: end}",
		"{type: foreach, target_var_name: x, target: 1..2, steps: [no-op]}", "{type: sleep, duration: 5s, on-error: [log a, fail]}",
		"{type: apt-get, package: x}", "{type: invoke-effector, effector: e, args: '${x}'}", "{steps: [[no-op]]}",
	} {
		if err := s.Validate(asJSON(t, []byte("- "+text))); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{
		"log a", "[]", "{}", "name: x", "{steps: [no-op], retension: 5}", "{steps: [no-op], lock: {limit: 1}}", "{steps: [no-op], idempotent: yes}",
		"{steps: [no-op], parameters: {a: strng}}", "- 5", "- ''", "- {type: log, step: log a}", "- {type: let, value: 1}", "- {type: let, variable: 1x, value: 1}",
		"- {type: goto}", "- {type: let, variable: a, value: 1, interpolation_mode: half}", "- {type: http, endpoint: a, headers: [b]}",
	} {
		if err := s.Validate(asJSON(t, []byte(text))); err == nil {
			t.Errorf("%s: got no error", text)
		}
	}
}

// The table says all that it has to.
func TestTypes(t *testing.T) {
	var names []string
	types := registry(t)
	for _, tp := range model.Types() {
		names = append(names, tp.Name)
		names = append(names, tp.Aliases...)
		if tp.Doc == "" || tp.Idempotent == "" || (tp.Shorthand == "") != (tp.Example == "") {
			t.Errorf("%s: got doc %q, idempotent %q, example %q", tp.Name, tp.Doc, tp.Idempotent, tp.Example)
		}
		for _, in := range tp.Inputs {
			if slices.Contains([]string{"step", "s", "shorthand", "name", "metadata", "input", "output", "condition", "on-error", "idempotent"}, in.Name) {
				t.Errorf("%s: no key can give the input %s", tp.Name, in.Name)
			}
			if in.Kind == 0 || (in.Kind == model.Choice) != (len(in.Choices) > 0) {
				t.Errorf("%s: the input %s has kind %d and choices %v", tp.Name, in.Name, in.Kind, in.Choices)
			}
		}
		if tp.Example == "" {
			continue
		}
		text := "- label again\n- label check\n- step: " + tp.Example + "\n"
		if tp.Name == "switch" {
			text += "  cases: [no-op]\n"
		}
		if tp.Name == "label" {
			text = "- " + tp.Example
		}
		if _, err := model.Parse("", []byte(text), &model.Options{Types: types}); err != nil {
			t.Errorf("the example of %s: %v", tp.Name, err)
		}
	}
	slices.Sort(names)
	if twice := len(names) - len(slices.Compact(slices.Clone(names))); twice > 0 {
		t.Errorf("%d names are used twice: %v", twice, names)
	}
	for name, want := range map[string]model.Idempotence{
		"let": model.Idempotent, "sleep": model.Idempotent, "fail": model.NotIdempotent, "http": model.NotIdempotent, "ssh": model.NotIdempotent,
		"shell": model.NotIdempotent, "container": model.NotIdempotent, "workflow": model.Nested, "foreach": model.Nested, "switch": model.Nested,
		"if": model.Nested, "activity": model.Nested, "child": model.Nested, "subworkflow": model.Nested, "retry": model.Idempotent,
	} {
		i := slices.IndexFunc(model.Types(), func(tp model.Type) bool { return tp.Name == name })
		if i < 0 || model.Types()[i].Idempotent != want {
			t.Errorf("A0-7: %s is not %s", name, want)
		}
	}
	model.ValueTypes()[0] = "changed"
	if model.ValueTypes()[0] == "changed" {
		t.Error("got the package's own list")
	}
}
