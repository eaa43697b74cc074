package topology_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/topology"
)

// A history is kept in blocks of 4 MiB, so that what the server does to a full block takes half as long as with its usual 8 (ADR 0035).
// Nothing of a run goes for it.
func TestHistoriesHaveSmallBlocks(t *testing.T) {
	o := embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev}
	smallBlocks(t, dial(t, o), o.StoreDir)
}

// The histories of a namespace that an earlier version has made get them from the next start of the server on.
func TestHistoriesThatExistGetSmallBlocks(t *testing.T) {
	o := embedded.Options{StoreDir: t.TempDir(), Profile: embedded.ProfileDev, DontListen: true}
	for _, opened := range []bool{false, true} {
		s, err := embedded.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		conn := connect(t, post.Options{InProcess: s.Conn()})
		ns, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !opened { // as an earlier version leaves it
			c := config(t, conn, ns.Name.StreamHistory(0))
			c.MaxMsgsPerSubject = -1
			if _, err := conn.JetStream().UpdateStream(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		conn.Close()
		s.Shutdown()
	}
	smallBlocks(t, dial(t, o), o.StoreDir)
}

func smallBlocks(t *testing.T, conn *post.Conn, dir string) {
	t.Helper()
	const (
		size     = 256 << 10
		messages = 20 // 5 MiB
	)
	got, err := topology.Ensure(t.Context(), conn, topology.Options{Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	stream := got.Name.StreamHistory(0)
	for range messages {
		if _, err := conn.JetStream().Publish(t.Context(), got.Name.History(0, "wid", "run"), bytes.Repeat([]byte("x"), size)); err != nil {
			t.Fatal(err)
		}
	}
	blocks, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) != 2 {
		t.Errorf("got blocks %v (%v), want 2", blocks, err)
	}
	for _, b := range blocks {
		if info, err := os.Stat(b); err != nil || info.Size() > 4<<20 {
			t.Errorf("got %v (%v), want at most 4 MiB", info, err)
		}
	}
	s, err := conn.JetStream().Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	if n := s.CachedInfo().State.Msgs; n != messages {
		t.Errorf("got %d messages, want %d", n, messages)
	}
}
