package embedded_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// Somebody takes the store away under the server, which has its files open and would go on to acknowledge into them. It says so, as
// long as the folder is another one, and leaves no mark of a good end in a store that is not its own.
func TestStoreIsTakenAway(t *testing.T) {
	dir, away := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "away")
	inBubble(t, embedded.Options{StoreDir: dir, Profile: embedded.ProfileDev}, func(t *testing.T, s *embedded.Server) {
		look := func() error {
			time.Sleep(2 * time.Second) // an answer is remembered for a second
			return s.Writable()
		}
		gone := func(why string) {
			t.Helper()
			if err := look(); !errors.Is(err, embedded.ErrStoreGone) || !strings.Contains(err.Error(), dir) {
				t.Fatalf("%s: got %v, want %v with the folder", why, err, embedded.ErrStoreGone)
			}
		}
		rename := func(from, to string) {
			t.Helper()
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := look(); err != nil {
			t.Fatal(err)
		}
		rename(dir, away)
		gone("moved")
		rename(away, dir)
		if err := look(); err != nil {
			t.Fatalf("put back: got %v", err)
		}
		rename(dir, away)
		if err := os.CopyFS(dir, os.DirFS(away)); err != nil {
			t.Fatal(err)
		}
		gone("replaced by a copy")
		s.Shutdown()
		if _, err := os.Stat(filepath.Join(dir, "ended")); !os.IsNotExist(err) {
			t.Fatalf("got %v, want no mark in the copy", err)
		}
	})
}
