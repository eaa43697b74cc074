package runs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is known of a history whose records were written one by one is what reading it tells.
func TestEndAppend(t *testing.T) {
	hash := []byte("hash")
	var e End
	for i, step := range []struct {
		seq      uint64
		first    int64
		events   int
		snapshot bool
		want     End
	}{
		{7, 1, 3, false, End{Complete: true, Since: 3}},
		{9, 4, 2, false, End{Since: 5}},
		{12, 6, 1, true, End{Complete: true, Snapshot: 12}},
		{20, 7, 4, false, End{Snapshot: 12, Since: 4}},
	} {
		e.Append(step.seq, hash, 99, step.first, step.events, step.snapshot)
		step.want.Sequence, step.want.Hash, step.want.At = step.seq, hash, 99
		if diff := cmp.Diff(step.want, e); diff != "" {
			t.Errorf("record %d (-want +got):\n%s", i, diff)
		}
	}
}
