package vet_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/droverhq/drover/vet"
)

// Each mistake is found and says the way out; what looks like one is not.
// sdk-go#767, #814, #818, #1133, temporal#4468.
func TestAnalyzer(t *testing.T) {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	analysistest.Run(t, dir, vet.Analyzer, "./...")
}
