package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// The code of the pages about workflows stands in programs, which are compiled and tested.
func TestWorkflowPages(t *testing.T) {
	for page, files := range map[string][]string{
		"start/first-workflow.md": {
			"../examples/workflows/helloworld/main.go", "../examples/workflows/helloworld/main_test.go",
		},
		"guides/testing.md":                      {"../drovertest/guide_test.go"},
		"guides/versions-and-the-replay-gate.md": {"../drovertest/guide_test.go"},
		"guides/sagas-and-cancellation.md": {
			"../examples/workflows/saga/main.go", "../examples/workflows/cancellation/main.go",
			"../decider/workflow/guide_test.go",
		},
	} {
		var program strings.Builder
		for _, f := range files {
			program.WriteString(read(t, f))
		}
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1)
		if len(blocks) == 0 {
			t.Errorf("%s has no code", page)
		}
		for _, b := range blocks {
			if !strings.Contains(program.String(), b[1]) {
				t.Errorf("%s: no program has\n%s", page, b[1])
			}
		}
	}
}
