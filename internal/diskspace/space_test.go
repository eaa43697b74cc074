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

// A disk with room is not full, and a folder that is not there is judged by the one above it.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	here, there := diskspace.Full(dir), diskspace.Full(filepath.Join(dir, "not", "there"))
	if (here == "") != diskspace.Enough(dir) || (here == "") != (there == "") {
		t.Errorf("got %q, and %q of a folder below it", here, there)
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
