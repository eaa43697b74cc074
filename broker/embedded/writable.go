package embedded

import (
	"errors"
	"strings"
	"sync"
	"time"
)

// writableEvery is how old the answer of Writable may be: to find it takes a look at every stream.
const writableEvery = time.Second

// writable remembers the last look.
type writable struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Writable returns nil, or why a stream takes no more messages: after a write that failed, on a
// full or broken disk, the NATS server refuses every other one to that stream without an answer,
// until it is started again. An [ErrStoreGone] says that nothing of what it still takes is in the
// store.
func (s *Server) Writable() error {
	w := &s.writable
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.at) < writableEvery {
		return w.err
	}
	w.at, w.err = time.Now(), s.unwritable()
	return w.err
}

// unwritable is Writable without its memory.
func (s *Server) unwritable() error {
	if err := s.store.gone(); err != nil {
		return err
	}
	for _, e := range s.unhealthy() {
		if strings.Contains(e.Error, "write error") {
			return errors.New(e.Error)
		}
	}
	return nil
}
