package sample_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/sample"
)

func TestOneOfFour(t *testing.T) {
	const all = 400
	for value, want := range map[string][2]int{"": {all, all}, "1": {all / 8, all / 2}} { // almost six deviations
		t.Setenv(sample.Env, value)
		ran := 0
		for range all {
			t.Run("", func(t *testing.T) {
				sample.OneOfFour(t)
				ran++
			})
		}
		if ran < want[0] || ran > want[1] {
			t.Errorf("%q: %d of %d ran, want %d to %d", value, ran, all, want[0], want[1])
		}
	}
}

// What is left out with the race detector runs without it: make test runs the packages twice that have something left out.
func TestWhatIsLeftOutRunsTwice(t *testing.T) {
	root := os.DirFS("../..")
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^TWICE := (.*)\$\$$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no TWICE")
	}
	twice := regexp.MustCompile(string(line[1]) + "$")
	if n := bytes.Count(makefile, []byte(sample.Env+"=1 ")); n != 1 {
		t.Errorf("the Makefile sets %s %d times, want it once: with the race detector", sample.Env, n)
	}
	using := map[string]bool{}
	err = fs.WalkDir(root, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || path.Dir(name) == "internal/sample" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if bytes.Contains(text, []byte("sample.OneOfFour(")) {
			using[path.Dir(name)] = true
		}
		return err
	})
	if err != nil || len(using) == 0 {
		t.Fatalf("found %v (%v)", using, err)
	}
	for dir := range using {
		if !twice.MatchString("/" + dir) {
			t.Errorf("%s has tests that are left out with the race detector; put it into TWICE of the Makefile", dir)
		}
	}
}
