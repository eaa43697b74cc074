package graph_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/droverhq/drover/decider/flow/graph"
	"github.com/droverhq/drover/decider/flow/model"
)

var update = flag.Bool("update", false, "rewrite the golden files with what came out; review the difference")

func parse(t testing.TB, file string, text []byte) *model.Definition {
	t.Helper()
	d, err := model.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each flow in testdata has a tree and a picture beside it.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("got %v, %v, want flows", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := graph.Of(parse(t, file, text))
		for end, got := range map[string]string{".txt": n.Text(), ".svg": n.SVG()} {
			name := strings.TrimSuffix(file, ".yaml") + end
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s: run with -update and look at the difference (-want +got):\n%s", name, diff)
			}
		}
	}
}

// A line is as one would have written the step.
func TestLabels(t *testing.T) {
	for yaml, want := range map[string]string{
		"- let integer x = ${x} + 1":                       "let integer x = ${x} + 1",
		"- {type: let, variable: x, value: {a: [1, 2.5]}}": `let x = {"a":[1,2.5]}`,
		"- activity a on b with x = 1, y = ${z}":           "activity a on b with x = 1, y = ${z}",
		"- {type: activity, activity: a, args: {x: 1}}":    "activity a with x = 1",
		"- fail rethrow message no":                        "fail rethrow message no",
		"- fail message no":                                "fail message no",
		"- clear-state x":                                  "clear-state x",
		"- wait for signal paid":                           "wait-for-signal paid",
		"- {step: no-op, name: rest}":                      "no-op: rest",
		"- {step: foreach x in 1..3, do: no-op}":           "foreach x in 1..3",
		"- {step: 'foreach {a,b} in ${l}', do: no-op}":     "foreach {a,b} in ${l}",
		"- \"log a\\e[2Jb\\nc\"":                           "log a�[2Jb c",
		"- if ${x} == 5 then no-op":                        "if ${x} == 5",
		"- [no-op]":                                        "subworkflow",
		"- http example.com":                               "http example.com",
	} {
		if got := graph.Of(parse(t, "", []byte(yaml))).Below[0].Label; got != want {
			t.Errorf("%s: got %q, want %q", yaml, got, want)
		}
	}
}

// A jump finds its step in the blocks around it, and not beyond a workflow.
func TestTargets(t *testing.T) {
	n := graph.Of(parse(t, "", []byte(`
- {id: a, step: no-op}
- steps:
  - goto a
  - {step: no-op, next: b}
  - {id: b, step: goto end}
- {type: workflow, steps: [{id: a, step: goto a}]}
`)))
	var got []string
	each(n, func(n *graph.Node) {
		if n.Jump != "" {
			got = append(got, n.Ref+" "+n.Jump+" "+n.Target)
		}
	})
	want := []string{"1.steps.0 a 0", "1.steps.1 b 1.steps.2", "1.steps.2 end ", "2.steps.0 a 2.steps.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func each(n *graph.Node, fn func(*graph.Node)) {
	fn(n)
	for _, child := range n.Below {
		each(child, fn)
	}
}

// Whatever a flow holds, each step is in the graph once, the tree has a line for each node, and the picture is XML.
func FuzzGraph(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := model.Parse("", text, nil)
		if err != nil {
			return
		}
		n := graph.Of(d)
		want, got, nodes := map[string]int{}, map[string]int{}, 0
		for s := range d.All() {
			want[s.Ref]++
		}
		each(n, func(n *graph.Node) {
			nodes++
			if n.Ref != "" {
				got[n.Ref]++
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if lines := strings.Count(n.Text(), "\n"); lines != nodes {
			t.Errorf("got %d lines, want %d:\n%s", lines, nodes, n.Text())
		}
		for x := xml.NewDecoder(strings.NewReader(n.SVG())); ; {
			if _, err := x.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}
