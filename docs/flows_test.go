package docs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/decider/flow/condition"
	"github.com/droverhq/drover/decider/flow/define"
	"github.com/droverhq/drover/decider/flow/expr"
	"github.com/droverhq/drover/decider/flow/model"
	"github.com/droverhq/drover/decider/flow/store"
)

const flows = "guides/flows.md"

// flowBlocks are the generators by the names of the markers in flows.md.
var flowBlocks = map[string]func() string{"bounds": flowBounds, "value-types": flowValueTypes}

func flowBounds() string {
	return fmt.Sprintf("A file has at most %d KiB, %d steps with those in blocks, handlers and nested workflows, and %d levels of these. A definition takes at most %d KiB "+
		"where it is stored; a namespace keeps %d flows, %d step types and %d versions of each.",
		model.MaxSize>>10, model.MaxSteps, model.MaxNest, store.MaxStored>>10, store.MaxNames, store.MaxNames, store.MaxVersions)
}

func flowValueTypes() string {
	return "The types are `" + strings.Join(model.ValueTypes(), "`, `") + "`."
}

var kindWords = map[model.Kind]string{
	model.Any: "anything", model.Text: "text", model.Boolean: "true or false", model.Integer: "whole number", model.Map: "map", model.List: "list",
	model.Length: "duration", model.Predicate: "condition", model.TypeName: "type", model.Variable: "name of a variable, without `${…}`",
	model.Steps: "a step or a list of steps", model.Status: "`any`, a number or a condition",
}

// cell makes a text fit a table.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

func flowStepTypes(*testing.T) string {
	var b strings.Builder
	for _, t := range model.Types() {
		fmt.Fprintf(&b, "### `%s`\n\n%s", t.Name, t.Doc)
		if len(t.Aliases) > 0 {
			fmt.Fprintf(&b, " Also `%s`.", strings.Join(t.Aliases, "`, `"))
		}
		fmt.Fprintf(&b, " May run again: %s.\n", t.Idempotent)
		if t.Shorthand != "" {
			fmt.Fprintf(&b, "\n```text\n%s %s\n```\n", t.Name, t.Shorthand)
		}
		if t.Example != "" {
			fmt.Fprintf(&b, "\nFor example `%s`.\n", t.Example)
		}
		if len(t.Inputs) > 0 {
			b.WriteString("\n| input | value | |\n| --- | --- | --- |\n")
		}
		for _, in := range t.Inputs {
			name := "`" + strings.Join(append([]string{in.Name}, in.Aliases...), "`, `") + "`"
			what := kindWords[in.Kind]
			if in.Kind == model.Choice {
				what = "`" + strings.Join(in.Choices, "`, `") + "`"
			}
			if in.Required {
				what += "; needed"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, cell(what), cell(in.Doc))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The tables of types are those of the model.
func TestFlowsGenerated(t *testing.T) {
	for k := model.Any; k <= model.Status; k++ {
		if k != model.Choice && kindWords[k] == "" {
			t.Fatalf("there is no word for the kind %d of inputs", k)
		}
	}
	file := read(t, flows)
	seen := 0
	now := marked.ReplaceAllStringFunc(file, func(block string) string {
		name := marked.FindStringSubmatch(block)[1]
		if flowBlocks[name] == nil {
			t.Fatalf("%s: nothing generates %q", flows, name)
		}
		seen++
		return "<!-- generated: " + name + " -->\n\n" + strings.TrimSpace(flowBlocks[name]()) + "\n\n<!-- /generated -->\n"
	})
	if seen != len(flowBlocks) {
		t.Fatalf("%s has %d markers, want %d", flows, seen, len(flowBlocks))
	}
	compare(t, flows, now)
}

var fenced = regexp.MustCompile("(?s)\n```yaml\n(.*?)```\n")

// Every example of the page is one that deploys, and so is that of every type.
func TestFlowExamples(t *testing.T) {
	examples := fenced.FindAllStringSubmatch(read(t, flows), -1)
	if len(examples) < 10 {
		t.Fatalf("got %d examples, want more", len(examples))
	}
	for _, e := range examples {
		if _, err := define.Parse(flows, []byte(e[1]), nil); err != nil {
			t.Errorf("%s:\n%v", e[1], err)
		}
	}
	for _, typ := range model.Types() {
		if typ.Example == "" {
			continue
		}
		steps := []any{map[string]any{"id": "again", "step": "no-op"}, map[string]any{"id": "check", "step": "no-op"}, typ.Example}
		switch typ.Name {
		case "label":
			steps = []any{typ.Example}
		case "switch":
			steps = []any{map[string]any{"step": typ.Example, "cases": []string{"no-op"}}}
		}
		text, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := define.Parse(typ.Name, text, nil); err != nil {
			t.Errorf("%s: %v", typ.Name, err)
		}
	}
}

// marks gives the part of the page between two comments.
func marks(t *testing.T, name string) string {
	t.Helper()
	_, rest, _ := strings.Cut(read(t, flows), "<!-- "+name+" -->\n")
	word, _, _ := strings.Cut(name, ":")
	part, _, ok := strings.Cut(rest, "<!-- /"+word+" -->\n")
	if !ok {
		t.Fatalf("%s has no part %q", flows, name)
	}
	return part
}

// The tables of keys have those of the schema, no more and no less.
func TestFlowKeys(t *testing.T) {
	type object struct {
		Properties map[string]any
		AnyOf      []struct{ Properties map[string]any }
	}
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(model.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"definition", "stepMap", "lock", "parameter"} {
		def := schema.Defs[name]
		var want []string
		for key := range def.Properties {
			want = append(want, key)
		}
		for _, either := range def.AnyOf {
			for key := range either.Properties {
				want = append(want, key)
			}
		}
		if len(want) == 0 {
			t.Fatalf("the schema has no keys for %s", name)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, column(marks(t, "keys: "+name), 0)); diff != "" {
			t.Errorf("%s (-schema +page):\n%s", name, diff)
		}
	}
}

// The page has every transform, and no other. The reader of chains names all in its hint.
func TestFlowTransforms(t *testing.T) {
	_, err := expr.ParseChain("frob")
	if err == nil {
		t.Fatal("frob is a transform: choose another word here")
	}
	_, list, ok := strings.Cut(err.Error(), "transforms are ")
	if !ok {
		t.Fatalf("got %v, want that it names the transforms", err)
	}
	want := strings.Fields(list)
	slices.Sort(want)
	var got []string
	for _, w := range column(marks(t, "transforms"), 0) {
		word, _, _ := strings.Cut(w, " ")
		got = append(got, word)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-code +page\n%s", diff)
	}
}

// The page has every key of conditions, and no other. The reader of conditions names all in its hint.
func TestFlowConditions(t *testing.T) {
	_, err := condition.Parse(map[string]any{"xyzzy": 1})
	if err == nil {
		t.Fatal("xyzzy is a key of conditions: choose another word here")
	}
	_, list, ok := strings.Cut(err.Error(), "keys are ")
	if !ok {
		t.Fatalf("got %v, want that it names the keys", err)
	}
	want := strings.Split(strings.TrimRight(list, ")"), ", ")
	slices.Sort(want)
	if diff := cmp.Diff(want, column(marks(t, "conditions"), 0)); diff != "" {
		t.Errorf("-code +page\n%s", diff)
	}
}

// Every key, check and transform of the page stands in one of its examples, which are run.
func TestFlowWordsHaveExamples(t *testing.T) {
	var all strings.Builder
	for _, e := range fenced.FindAllStringSubmatch(read(t, flows), -1) {
		all.WriteString(e[1])
	}
	for part, before := range map[string]string{
		"keys: definition": "", "keys: stepMap": "", "keys: lock": "", "keys: parameter": "", "conditions": "", "transforms": `\| `,
	} {
		words := column(marks(t, part), 0)
		if len(words) == 0 {
			t.Errorf("%s: the table has no words", part)
		}
		for _, w := range words {
			word, _, _ := strings.Cut(w, " ")
			pattern := `(?m)(^|[\s{-])` + regexp.QuoteMeta(word) + ":"
			if before != "" {
				pattern = `(?m)(` + before + `|^  - )` + regexp.QuoteMeta(word) + `\b`
			}
			if !regexp.MustCompile(pattern).MatchString(all.String()) {
				t.Errorf("%s: no example has %s", part, w)
			}
		}
	}
}
