package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// What a store takes already is added as a whole to what its streams may take, so that one that has come to its limit has room again after a
// restart.
func TestRoomOnDisk(t *testing.T) {
	dir := t.TempDir()
	if got := usedOnDisk(filepath.Join(dir, "jetstream")); got != 0 {
		t.Errorf("got %d bytes of nothing", got)
	}
	for _, name := range []string{"jetstream/$G/streams/a/msgs/1.blk", "jetstream/$G/streams/b/meta.inf", "other"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := usedOnDisk(filepath.Join(dir, "jetstream")); got != 2000 {
		t.Errorf("got %d bytes, want 2000", got)
	}
	if got := roomOnDisk(filepath.Join(dir, "nowhere")); got != 0 {
		t.Errorf("got %d bytes for a folder that is not there, want 0", got)
	}
}

// The server tells how full it is, in memory and on a disk.
func TestRoom(t *testing.T) {
	for name, o := range map[string]Options{"memory": {MaxStore: 16 << 20}, "disk": {StoreDir: t.TempDir(), Profile: ProfileDev, MaxStore: 32 << 20}} {
		t.Run(name, func(t *testing.T) {
			o.DontListen = true
			s, err := Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Shutdown()
			if bytes, limit := s.measure(); bytes != 0 || limit != o.MaxStore {
				t.Errorf("got %d of %d bytes, want none of %d", bytes, limit, o.MaxStore)
			}
			nc, err := nats.Connect("", nats.InProcessServer(s.srv))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			storage := "file"
			if s.Memory() {
				storage = "memory"
			}
			if _, err := nc.Request("$JS.API.STREAM.CREATE.S", []byte(`{"name":"S","subjects":["s"],"storage":"`+storage+`"}`), time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := nc.Request("s", []byte(strings.Repeat("x", 1000)), time.Minute); err != nil {
				t.Fatal(err)
			}
			if bytes, limit := s.Room(); bytes < 1000 || bytes > 2000 || limit != o.MaxStore {
				t.Errorf("got %d of %d bytes for a message of 1000", bytes, limit)
			}
		})
	}
}
