package embedded

import (
	"errors"
	"fmt"

	"github.com/droverhq/drover/internal/diskspace"
)

// ErrBroken says that the server can store nothing any more until it is started again, and that a
// start would do; see [Server.Broken].
var ErrBroken = errors.New("the store cannot be written until the server is started again")

// Broken returns nil, or an [ErrBroken] with the reason: the NATS server has switched JetStream
// off, or a write has failed, after which it refuses every other one to that stream. As long as the
// disk is full the latter is no such reason: a start would fail, and meanwhile those who ask are
// told. Nor is a store that is gone, which must be put back before.
func (s *Server) Broken() error {
	if s.store.temporary || !s.started {
		return nil
	}
	full := diskspace.Full(s.store.dir)
	if !s.srv.JetStreamEnabled() {
		if full == "" {
			full = "a write to " + s.store.dir + " has failed"
		}
		return fmt.Errorf("%w: JetStream has switched itself off: %s", ErrBroken, full)
	}
	err := s.Writable()
	if err == nil || errors.Is(err, ErrStoreGone) || full != "" {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}
