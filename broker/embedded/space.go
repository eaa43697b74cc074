package embedded

import (
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/droverhq/drover/internal/diskspace"
)

// roomOnDisk is what all streams of a store may take if nobody says it, or 0 if the file system
// does not tell: then the NATS server estimates it. Its own estimate, three quarters of what is
// free and of what is used, leaves a store that has come to that limit full at each start, so that
// no claim can be written and nobody purges, though a quarter of the disk is free.
func roomOnDisk(dir string) int64 {
	free, _ := diskspace.Of(dir)
	if free == 0 {
		return 0
	}
	return usedOnDisk(filepath.Join(dir, server.JetStreamStoreDir)) + int64(free/4*3)
}

// usedOnDisk is the bytes of all files below dir. What cannot be read does not count.
func usedOnDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // less room is no harm
		}
		if i, err := d.Info(); err == nil {
			bytes += i.Size()
		}
		return nil
	})
	return bytes
}

// roomSoon and roomLater are how old the answer of Room may be at least, since to find it takes a
// look at every stream, and at most.
const (
	roomSoon  = 50 * time.Millisecond
	roomLater = time.Second
)

// measured remembers the last look.
type measured struct {
	mu           sync.Mutex
	until        time.Time
	bytes, limit int64
}

// Room tells how many bytes all streams take, and how many they may take. After that limit nothing
// is stored any more. The answer is up to a second old; less, if a tenth of what is left may have
// come in since.
func (s *Server) Room() (bytes, limit int64) {
	m := &s.measured
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); !now.Before(m.until) {
		m.bytes, m.limit = s.measure()
		m.until = now.Add(diskspace.FillTime((m.limit-m.bytes)/10, roomSoon, roomLater))
	}
	return m.bytes, m.limit
}

// measure is Room without its memory.
func (s *Server) measure() (bytes, limit int64) {
	i, err := s.srv.Jsz(nil)
	switch {
	case err != nil || i.Disabled:
		return 0, 0
	case s.store.temporary:
		return int64(i.Memory), i.Config.MaxMemory
	default:
		return int64(i.Store), i.Config.MaxStore
	}
}
