package nodes

import "testing"

func TestPartitionWords(t *testing.T) {
	for want, all := range map[string][]int{"-": nil, "3": {3}, "0-3": {0, 1, 2, 3}, "0,2": {0, 2}, "0-1,5,7-9": {0, 1, 5, 7, 8, 9}} {
		if got := partitionWords(all); got != want {
			t.Errorf("%v: got %q, want %q", all, got, want)
		}
	}
}
