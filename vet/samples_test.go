package vet_test

import (
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/droverhq/drover/vet"
)

// mistakes is a file beside the first sample, with the real API.
const mistakes = `package main

import (
	"context"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/workflow"
)

func mistakes(ctx workflow.Context, c *drover.Client) {
	_ = time.Now()
	workflow.Start(ctx, Greet, "x")
	_ = workflow.Once(ctx, "now", time.Now)
	_, _ = workflow.Do(ctx, "now", func(context.Context) (time.Time, error) { return time.Now(), nil })
	for range map[int]int{} {
		_, _ = workflow.Call(ctx, Greet, "x")
	}
	_ = workflow.WaitFor(ctx, func() bool { return workflow.Sleep(ctx, 1) == nil })
	_, _ = drover.Start(context.Background(), c, Hello, "x", nil)
	_, _ = c.Start(nil, "x", nil, nil)
}
`

// In the project's own samples nothing is found, but what was put there.
func TestSamplesAreClean(t *testing.T) {
	file, err := filepath.Abs("../examples/workflows/helloworld/mistakes.go")
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.LoadSyntax | packages.NeedModule, // of others the compiler's export data
		Dir:  "..", Context: t.Context(), Overlay: map[string][]byte{file: []byte(mistakes)},
	}, "./examples/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{vet.Analyzer}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, act := range graph.Roots {
		if act.Err != nil {
			t.Error(act.Err)
		}
		for _, d := range act.Diagnostics {
			p := act.Package.Fset.Position(d.Pos)
			if p.Filename != file {
				t.Errorf("%s: %s", p, d.Message)
			}
			found = append(found, p.Line)
		}
	}
	if want := []int{12, 13, 16, 19, 20, 20, 21}; !slices.Equal(found, want) {
		t.Errorf("found something in lines %v of the mistakes, want %v", found, want)
	}
}
