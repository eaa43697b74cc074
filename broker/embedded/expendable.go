package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// expendableFile names the streams that hold nothing which cannot be repeated, one a line.
const expendableFile = "expendable"

// sumLength is how long the checksum of a definition is, in letters.
const sumLength = 16

// expendable remembers what Expendable was told.
type expendable struct {
	mu    sync.Mutex
	names []string
}

// Expendable notes for good that a stream holds nothing which cannot be repeated. The server does
// not sync the definition of a stream that acknowledges before it writes, and a power cut soon
// after it was made can tear that, beside messages that are whole. The store of any other stream is
// refused then; one that is noted is removed at the next start, and made again. So call it before
// the first message. It may be called again.
//
// Considered: to sync the definition when the stream is made. The server writes it again when the
// stream is changed.
func (s *Server) Expendable(stream string) error {
	if s.store.temporary {
		return nil
	}
	if stream == "" || strings.ContainsAny(stream, "/\\\n") {
		return fmt.Errorf("%w: %q is not the name of a stream", ErrInvalidOptions, stream)
	}
	e := &s.expendable
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.names, stream) {
		return nil
	}
	names := append(slices.Clone(e.names), stream)
	if err := writeDurably(filepath.Join(s.store.dir, expendableFile), strings.Join(names, "\n")+"\n"); err != nil {
		return unusable(s.store.dir, err)
	}
	e.names = names
	return nil
}

// removeTorn removes the streams that are noted as expendable and whose definition, or that of a
// consumer, is torn. It is called before the server starts.
func (s *Server) removeTorn() error {
	b, err := os.ReadFile(filepath.Join(s.store.dir, expendableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	s.expendable.names = strings.Fields(string(b))
	for _, stream := range s.expendable.names {
		// The account of clients without one.
		dir := filepath.Join(s.store.dir, server.JetStreamStoreDir, "$G", "streams", stream)
		if _, err := os.Stat(dir); err != nil ||
			!slices.ContainsFunc(append(matches(dir, "obs", "*"), dir), torn) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		s.log.Warnf(
			"embedded server: the definition of stream %s was torn when the machine stopped; "+
				"the stream is removed, and what was in it is repeated", stream)
	}
	return nil
}

// torn tells whether the definition in a folder is not whole. The server writes two files, each at
// once.
func torn(dir string) bool {
	definition, err := os.ReadFile(filepath.Join(dir, server.JetStreamMetaFile))
	if err != nil {
		return true
	}
	sum, err := os.ReadFile(filepath.Join(dir, server.JetStreamMetaFileSum))
	return err != nil || len(sum) != sumLength || !json.Valid(definition)
}
