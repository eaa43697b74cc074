//go:build linux

package damage

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// stages are the folders in memory where the server of this machine gathers batches.
func (m *machine) stages() []string {
	m.t.Helper()
	if m.storeID == "" {
		id, err := os.ReadFile(filepath.Join(m.store, "store-id"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.storeID = strings.TrimSpace(string(id))
	}
	found, err := filepath.Glob(filepath.Join("/dev/shm", "drover-stage-"+m.storeID+"-*"))
	if err != nil {
		m.t.Fatal(err)
	}
	return found
}

// forget is what a power cut does to memory.
func forget(t *testing.T, folders []string) {
	t.Helper()
	for _, dir := range folders {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// batches counts the records of histories that were stored as part of a batch, and of how many.
func (m *machine) batches(js jetstream.JetStream) (records, batches int) {
	m.t.Helper()
	seen := map[string]bool{}
	for p := range 2 {
		c, err := js.OrderedConsumer(m.t.Context(), namespace.StreamHistory(p), jetstream.OrderedConsumerConfig{HeadersOnly: true})
		if err != nil {
			m.t.Fatal(err)
		}
		for {
			msg, err := c.Next(jetstream.FetchMaxWait(patience))
			if err != nil {
				m.t.Fatal(err)
			}
			if id := msg.Headers().Get("Nats-Batch-Id"); id != "" {
				records++
				seen[id] = true
			}
			meta, err := msg.Metadata()
			if err != nil {
				m.t.Fatal(err)
			}
			if meta.NumPending == 0 {
				break
			}
		}
	}
	return records, len(seen)
}
