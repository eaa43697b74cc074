package diskspace

import "testing"

// What some file systems say of their inodes is no number: btrfs has 0 of 0.
func TestInodesThatAreNone(t *testing.T) {
	for _, tt := range []struct{ free, total, wantFree, wantTotal uint64 }{{0, 0, 0, 0}, {5, 0, 0, 0}, {1<<64 - 1, 10, 0, 0}, {0, 10, 0, 10}, {10, 10, 10, 10}} {
		if free, total := inodes(tt.free, tt.total); free != tt.wantFree || total != tt.wantTotal {
			t.Errorf("%d of %d: got %d of %d, want %d of %d", tt.free, tt.total, free, total, tt.wantFree, tt.wantTotal)
		}
	}
}
