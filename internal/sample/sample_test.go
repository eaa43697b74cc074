package sample_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/droverhq/drover/internal/sample"
)

func TestOneOfEight(t *testing.T) {
	const all = 800
	for value, want := range map[string][2]int{"": {all, all}, "1": {all / 16, all / 5}} { // more than five deviations
		t.Setenv(sample.Env, value)
		ran := 0
		for range all {
			t.Run("", func(t *testing.T) {
				sample.OneOfEight(t)
				ran++
			})
		}
		if ran < want[0] || ran > want[1] {
			t.Errorf("%q: %d of %d ran, want %d to %d", value, ran, all, want[0], want[1])
		}
	}
}

// What is left out with the race detector runs without it: make test leaves tests out in one of its two passes, and the
// other one has all packages but those that are named here, which leave nothing out.
func TestWhatIsLeftOutRunsToo(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var passes []string
	for l := range strings.Lines(string(makefile)) {
		if strings.Contains(l, "$(GO) test -vet=off") {
			passes = append(passes, l)
		}
	}
	if len(passes) != 2 || strings.Contains(passes[0], " -race ") == strings.Contains(passes[1], " -race ") {
		t.Fatalf("got %d passes, want one with the race detector and one without:\n%s", len(passes), passes)
	}
	for _, pass := range passes {
		race := strings.Contains(pass, " -race ")
		if strings.Contains(pass, sample.Env+"=1 ") != race || strings.Contains(pass, "$(PLAIN)") != race {
			t.Errorf("tests and packages are left out with the race detector, and only there:\n%s", pass)
		}
	}
	if raced := regexp.MustCompile(`(?m)^RACED := (.*)$`).FindSubmatch(makefile); raced == nil || string(raced[1]) != "/e2e/chaos$$" {
		t.Errorf("got %q, want e2e/chaos alone to run with the race detector only", raced)
	}
}
