package diskspace_test

import (
	"path/filepath"
	"testing"

	"github.com/droverhq/drover/internal/diskspace"
)

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
