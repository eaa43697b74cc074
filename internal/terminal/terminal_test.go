package terminal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/droverhq/drover/internal/terminal"
)

func TestWhatIsNoTerminalHasNoWidth(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if a, b, c := terminal.Width(f), terminal.Width(null), terminal.Width(&bytes.Buffer{}); a != 0 || b != 0 || c != 0 {
		t.Errorf("a file has width %d, %s %d and a buffer %d, want 0", a, os.DevNull, b, c)
	}
}
