package embedded_test

import (
	"os"
	"slices"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
)

// A server knows the one before it on its store only if that one has ended properly: not one that was killed, whose folder is
// here a copy made while it ran, and not one whose end was told of to an earlier start.
func TestPredecessors(t *testing.T) {
	dir := t.TempDir()
	run := func(dir string, want ...string) (id string) {
		t.Helper()
		s := start(t, embedded.Options{StoreDir: dir, Profile: embedded.ProfileDev})
		defer s.Shutdown()
		if got := s.Predecessors(); !slices.Equal(got, want) {
			t.Errorf("got predecessors %q, want %q", got, want)
		}
		js := connect(t, s)
		defer js.Conn().Close()
		return js.Conn().ConnectedServerId()
	}
	first := run(dir)
	second := run(dir, first)
	third := run(dir, second, first)

	s := start(t, embedded.Options{StoreDir: dir, Profile: embedded.ProfileDev})
	makeStream(t, s, connect(t, s), "S")
	cut := t.TempDir()
	if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	fifth := run(cut) // nothing is known of the one that was cut short, nor of those before it
	run(cut, fifth)

	if got, want := s.Predecessors(), []string{third, second, first}; !slices.Equal(got, want) {
		t.Errorf("got predecessors %q, want %q", got, want)
	}
}

// A store in memory has no predecessor.
func TestPredecessorsInMemory(t *testing.T) {
	if got := start(t, embedded.Options{}).Predecessors(); len(got) > 0 {
		t.Errorf("got predecessors %q, want none", got)
	}
}
