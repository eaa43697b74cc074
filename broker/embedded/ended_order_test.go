package embedded_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded"
)

// A server counts as a predecessor only if it was told to stop and nobody has touched the store since.
func TestPredecessorEndedInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		profile embedded.Profile
		between func(t *testing.T, dir string)
		want    bool
	}{
		"dev":                 {embedded.ProfileDev, func(*testing.T, string) {}, true},
		"single":              {embedded.ProfileSingle, func(*testing.T, string) {}, true},
		"a crash":             {embedded.ProfileSingle, func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "ended")) }, false},
		"a mark that is torn": {embedded.ProfileSingle, func(t *testing.T, dir string) { tear(t, filepath.Join(dir, "ended")) }, false},
		"a block is touched": {embedded.ProfileSingle, func(t *testing.T, dir string) {
			block := filepath.Join(dir, "jetstream", "$G", "streams", "a", "msgs", "1.blk")
			if err := os.Chtimes(block, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, false},
		"a stream is gone": {embedded.ProfileSingle, func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "jetstream", "$G", "streams", "a")); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := start(t, embedded.Options{StoreDir: dir, Profile: tc.profile})
			if got := s.Predecessors(); len(got) != 0 {
				t.Fatalf("a new store has predecessors %v", got)
			}
			js := connect(t, s)
			makeStream(t, s, js, "a")
			if _, err := js.Publish(t.Context(), "a.b", []byte("x")); err != nil {
				t.Fatal(err)
			}
			id := js.Conn().ConnectedServerId()
			s.Shutdown()
			tc.between(t, dir)
			s = start(t, embedded.Options{StoreDir: dir, Profile: tc.profile})
			if got := s.Predecessors(); slices.Equal(got, []string{id}) != tc.want || !tc.want && len(got) != 0 {
				t.Fatalf("got %v, want %s: %v", got, id, tc.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "ended")); !os.IsNotExist(err) {
				t.Fatalf("got %v, want the mark gone: from here on a crash is possible", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func tear(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
}
