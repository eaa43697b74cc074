package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// A server is no predecessor one of whose writes has failed, also in the moment before it is told to stop: what it has
// acknowledged before it wrote it may be missing.
func TestPredecessorThatCouldNotWrite(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, embedded.Options{StoreDir: dir, Profile: embedded.ProfileDev}, func(t *testing.T, s *embedded.Server) {
		js := connect(t, s)
		makeStream(t, s, js, "a")
		if err := errors.Join(s.Writable(), s.Broken()); err != nil {
			t.Fatal(err)
		}
		// The next block cannot be made.
		if err := os.Mkdir(filepath.Join(dir, "jetstream", "$G", "streams", "a", "msgs", "2.blk"), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if err := js.Conn().Publish(fmt.Sprintf("a.%d", i), make([]byte, 1<<20-100)); err != nil {
				t.Fatal(err)
			}
		}
		if err := js.Conn().Flush(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // all of it has been tried
		if s.Health() == nil {
			t.Fatal("the server could write")
		}
		time.Sleep(2 * time.Second)
		if err := s.Broken(); !errors.Is(err, embedded.ErrBroken) { // E7
			t.Fatalf("got %v, want that a start is needed, since the disk has room", err)
		}
		s.Shutdown()
		if _, err := os.Stat(filepath.Join(dir, "ended")); !os.IsNotExist(err) {
			t.Fatalf("got %v, want no mark", err)
		}
	})
}
