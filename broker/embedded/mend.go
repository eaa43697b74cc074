package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/highwayhash"
	"github.com/nats-io/nats-server/v2/server"
)

// mendDefinitions deals with the definitions that a crash has left unfinished. The server writes a
// definition and then its checksum, most of the time without a sync, and a power cut may fall
// between the two or tear either. It would pass over such a stream; whoever makes the stream again
// gets it, but the server writes no definition beside one that is there, so the next start would
// pass over it too, with what was acknowledged meanwhile. It is called before the server starts.
func (s *Server) mendDefinitions() error {
	var err error
	if s.defined, err = s.openDefined(); err != nil {
		return err
	}
	for _, st := range s.streamsOnDisk() {
		if err := s.mendStream(st); err != nil {
			return err
		}
		for _, consumer := range matches(st.dir, "obs", "*") {
			if err := s.mendConsumer(consumer); err != nil {
				return err
			}
		}
	}
	return nil
}

// mendStream gives a definition that is whole its checksum, and takes one that is torn from a
// stream without messages. A torn one beside messages is damage, which the start finds out and
// refuses, unless it never was durable: then the folder is put aside, for whoever wants to look
// into it.
//
// A definition that is whole in all but its checksum could be damaged too. Damage that leaves JSON
// with the name of the stream is not expected.
func (s *Server) mendStream(st streamDir) error {
	path := filepath.Join(st.dir, server.JetStreamMetaFile)
	definition, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var config struct{ Name string }
	if err == nil && json.Unmarshal(definition, &config) == nil && config.Name == st.name {
		return s.mendSum(st, definition)
	}
	switch {
	case !hasMessages(st.dir):
		if err != nil {
			return nil
		}
		s.log.Warnf(
			"embedded server: %s was being made when the machine stopped: its half definition is removed",
			st.dir)
		return os.Remove(path)
	case s.defined.has(st):
		return nil
	}
	aside := filepath.Join(s.store.dir, tornFolder,
		fmt.Sprintf("%s.%d", st.name, time.Now().UnixNano()))
	if err := os.MkdirAll(filepath.Dir(aside), 0o700); err != nil {
		return err
	}
	if err := os.Rename(st.dir, aside); err != nil {
		return err
	}
	s.log.Warnf("embedded server: %s was made in the moment before the machine stopped, and its "+
		"definition is torn: it is now %s, and is made again without its messages", st.dir, aside)
	return nil
}

// mendSum writes the checksum of a definition if it is not there, torn, or of the definition
// before.
func (s *Server) mendSum(st streamDir, definition []byte) error {
	want, err := checksum(st.name, definition)
	if err != nil {
		return err
	}
	path := filepath.Join(st.dir, server.JetStreamMetaFileSum)
	have, err := os.ReadFile(path)
	if err == nil && string(have) == want {
		return nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syncPath(filepath.Join(st.dir, server.JetStreamMetaFile)); err != nil {
		return err
	}
	s.log.Warnf(
		"embedded server: the checksum of the definition of %s is %q, want %q: it was being "+
			"written when the machine stopped, and is written again", st.dir, have, want)
	return writeDurably(path, want)
}

// checksum is the server's for the definition of a stream.
func checksum(stream string, definition []byte) (string, error) {
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.New64(key[:])
	if err != nil {
		return "", err
	}
	_, err = h.Write(definition)
	return hex.EncodeToString(h.Sum(nil)), err
}

// mendConsumer removes the definition of a consumer that has no checksum or is torn. Who needs the
// consumer makes it again.
func (s *Server) mendConsumer(dir string) error {
	path := filepath.Join(dir, server.JetStreamMetaFile)
	definition, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if fi, err := os.Stat(filepath.Join(dir, server.JetStreamMetaFileSum)); err == nil &&
		fi.Size() > 0 && json.Valid(definition) {
		return nil // the server asks whether there is a checksum, not what it is
	}
	s.log.Warnf(
		"embedded server: %s was being made when the machine stopped: its half definition is removed",
		dir)
	return os.Remove(path)
}
