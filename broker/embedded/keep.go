package embedded

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// keptPerSync is how often within a sync interval the definitions are looked at. The server syncs the first messages of a
// new stream half an interval after it was made at the earliest: its definition must be durable before them.
const keptPerSync = 4

// keeper makes the definitions of streams and consumers durable where the server does not, in ProfileDev and, in ProfileSingle,
// for streams that acknowledge before they write: it writes them
// once, and a power cut up to 30 s later, when the kernel writes them back by itself, leaves an empty file. Then the
// stream could not be recovered, with all its synced messages, and the whole store would be refused.
//
// Considered: to sync everything. Considered: to sync when a stream is made. Others make streams too.
type keeper struct {
	dir  string // of JetStream
	seen map[string]time.Time
}

// patterns of the files that define something, below the folder of JetStream: account, streams, name.
var definitions = []string{
	filepath.Join("*", "streams", "*", "meta.*"),
	filepath.Join("*", "streams", "*", "obs", "*", "meta.*"),
}

func newKeeper(storeDir string) *keeper {
	return &keeper{dir: filepath.Join(storeDir, server.JetStreamStoreDir), seen: make(map[string]time.Time)}
}

// keep syncs what has changed since the last call. A file that is gone by then was deleted or is being replaced.
func (k *keeper) keep() error {
	var failed error
	for _, pattern := range definitions {
		names, _ := filepath.Glob(filepath.Join(k.dir, pattern)) // the patterns are well formed
		for _, name := range names {
			fi, err := os.Stat(name)
			if err != nil || k.seen[name].Equal(fi.ModTime()) {
				continue
			}
			if err := syncPath(name); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			k.seen[name] = fi.ModTime()
		}
	}
	return failed
}

func syncPath(name string) error {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// keepDefinitions runs a keeper until quit is closed.
func (s *Server) keepDefinitions(quit <-chan struct{}) {
	k := newKeeper(s.store.dir)
	tick := time.NewTicker(cmp.Or(s.opts.SyncInterval, devSyncInterval) / keptPerSync)
	defer tick.Stop()
	complained := false
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
		}
		err := k.keep()
		if err != nil && !complained {
			s.log.WithField("err", err).Warn("embedded server: the definitions of streams cannot be synced; a power cut could make the store unusable")
		}
		complained = err != nil
	}
}
