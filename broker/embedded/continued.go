package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// endedFile holds the id of the NATS server that left the store whole when it was told to stop, and how it left it.
const endedFile = "ended"

// Continues returns the id of the NATS server that had the store before this one, if it was told to stop, left all that it
// had acknowledged on disk, and nobody has touched its files since. It returns "" otherwise: after a crash, for a new store,
// for one out of a backup.
func (s *Server) Continues() string { return s.continues }

// beginStore reads who ended in order, and forgets it for good: from here on a crash is possible.
func (s *Server) beginStore() error {
	if !s.marksEnd() {
		return nil
	}
	path := filepath.Join(s.store.dir, endedFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err == nil {
		err = syncPath(s.store.dir)
	}
	if err != nil {
		return err
	}
	look, err := s.eachFile(nil)
	if id, as, _ := strings.Cut(strings.TrimSpace(string(b)), " "); err == nil && as == look {
		s.continues = id
	}
	return nil
}

// endStore makes everything in the store durable and notes who has ended. The server itself syncs nothing when it stops.
func (s *Server) endStore(id string) error {
	look, err := s.eachFile(syncPath)
	if err != nil {
		return err
	}
	return writeDurably(filepath.Join(s.store.dir, endedFile), id+" "+look+"\n")
}

// marksEnd tells whether there is anybody to read the mark: a node of a cluster has others that know better.
func (s *Server) marksEnd() bool { return !s.store.temporary && !s.opts.Cluster.on() }

// eachFile calls do, if there is any, for every file and folder of the streams, and returns a digest of their names, sizes
// and times. It reads no file: what is touched is told by its time.
func (s *Server) eachFile(do func(path string) error) (string, error) {
	h := sha256.New()
	top := filepath.Join(s.store.dir, server.JetStreamStoreDir)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if (d.Type().IsRegular() || d.IsDir()) && do != nil {
			if err := do(path); err != nil {
				return err
			}
		}
		if !d.Type().IsRegular() {
			return nil
		}
		fi, err := d.Info()
		if err == nil {
			fmt.Fprintf(h, "%q %d %d\n", strings.TrimPrefix(path, top), fi.Size(), fi.ModTime().UnixNano())
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
