package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// The code of the first page about workflows stands in the program that it leads through, which is
// compiled and tested.
func TestFirstWorkflow(t *testing.T) {
	program := read(t, "../examples/workflows/helloworld/main.go") + read(t, "../examples/workflows/helloworld/main_test.go")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, "start/first-workflow.md"), -1)
	if len(blocks) == 0 {
		t.Fatal("the page has no code")
	}
	for _, b := range blocks {
		if !strings.Contains(program, b[1]) {
			t.Errorf("the program does not have\n%s", b[1])
		}
	}
}
