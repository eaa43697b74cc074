package diskspace_test

import (
	"path/filepath"
	"testing"

	"github.com/droverhq/drover/internal/diskspace"
)

// A file system without a number of inodes is short of none.
func TestInodes(t *testing.T) {
	dir := t.TempDir()
	if free, total := diskspace.Inodes(dir); free > total {
		t.Errorf("got %d inodes free of %d", free, total)
	}
	if short := diskspace.Short(dir); short != "" {
		t.Errorf("got %q of a folder that was just made", short)
	}
	if free, total := diskspace.Inodes(filepath.Join(dir, "nowhere")); free != 0 || total != 0 {
		t.Errorf("got %d inodes free of %d for a folder that is not there, want 0", free, total)
	}
}

// Nobody has more free than there is, and a folder that is not there tells nothing.
func TestOf(t *testing.T) {
	dir := t.TempDir()
	if free, total := diskspace.Of(dir); free > total {
		t.Errorf("got %d bytes free of %d", free, total)
	}
	if free, total := diskspace.Of(filepath.Join(dir, "nowhere")); free != 0 || total != 0 {
		t.Errorf("got %d bytes free of %d for a folder that is not there, want 0", free, total)
	}
}
