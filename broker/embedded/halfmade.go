package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
)

// removeHalfMade removes the definition of each stream that holds nothing, and of each consumer, whose checksum is not there: the
// server writes the one and then the other, and a crash may fall between them. Nobody was told that the thing was made.
//
// The server passes over what has no checksum. Whoever makes the stream again gets it; but the server writes no checksum
// beside a definition that is there already, so the next start would pass over the stream too, with the messages that were
// acknowledged meanwhile. It is called before the server starts.
func (s *Server) removeHalfMade() error {
	streams := filepath.Join(s.store.dir, server.JetStreamStoreDir)
	definitions := append(matches(streams, "*", "streams", "*", server.JetStreamMetaFile),
		matches(streams, "*", "streams", "*", "obs", "*", server.JetStreamMetaFile)...)
	for _, definition := range definitions {
		dir := filepath.Dir(definition)
		if fi, err := os.Stat(filepath.Join(dir, server.JetStreamMetaFileSum)); err == nil && fi.Size() > 0 || hasMessages(dir) {
			continue
		}
		if err := os.Remove(definition); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.log.Warnf("embedded server: %s was being made when the machine stopped: its half definition is removed", dir)
	}
	return nil
}
