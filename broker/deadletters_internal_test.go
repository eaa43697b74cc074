package broker

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/droverhq/drover/broker/partition"
	"github.com/google/go-cmp/cmp"
)

// Every reason that the table of dead-letters.md names, which a test there keeps complete, is counted without a letter being read.
func TestDeadReasonsAreComplete(t *testing.T) {
	paper, err := os.ReadFile("../docs/reference/dead-letters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(paper), "\n## Reasons of dead letters\n")
	table, _, _ = strings.Cut(table, "\nA letter that is itself unreadable")
	var want []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "`"); len(cells) == 3 && strings.HasPrefix(line, "| `") {
			want = append(want, cells[1])
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(partition.DeadReasons))); diff != "" {
		t.Errorf("(-paper +code):\n%s", diff)
	}
}
