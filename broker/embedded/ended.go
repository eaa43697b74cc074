package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// endedFile says that the last server of the store has ended properly, with everything on disk: how
// it left the files, which server it was, and in further lines those before it, as long as each of
// them has ended so. It is there between that end and the next start only.
const endedFile = "ended"

// mostEnded bounds how many servers it names. A partition that none of them has taken over is
// looked through.
const mostEnded = 64

// takeEnded reads and removes the mark. It counts only once it is gone for good: a power cut in the
// middle of this start must not find it again. And only if nobody has touched the files since: they
// may be out of a backup.
func (s *Server) takeEnded() error {
	path := filepath.Join(s.store.dir, endedFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(os.Remove(path), syncPath(s.store.dir)); err != nil {
		return err
	}
	if words := strings.Fields(string(b)); len(words) > 0 && s.marksEnd() {
		if look, err := s.eachFile(nil); err == nil && look == words[0] {
			s.predecessors = words[1:]
		}
	}
	return nil
}

// markEnded syncs what the server has left and then says so. The server itself syncs nothing when
// it stops.
func (s *Server) markEnded() error {
	look, err := s.eachFile(syncPath)
	if err != nil {
		return err
	}
	all := append([]string{s.srv.ID()}, s.predecessors...)
	return writeDurably(filepath.Join(s.store.dir, endedFile),
		look+"\n"+strings.Join(all[:min(len(all), mostEnded)], "\n")+"\n")
}

// marksEnd tells whether there is anybody to read the mark: a node of a cluster has others that
// know better.
func (s *Server) marksEnd() bool { return !s.store.temporary && !s.opts.Cluster.on() }

// eachFile calls do, if there is any, for every file and folder of the streams, and returns a
// digest of their names, sizes and times. It reads no file: what is touched is told by its time.
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
			fmt.Fprintf(h, "%q %d %d\n", strings.TrimPrefix(path, top), fi.Size(),
				fi.ModTime().UnixNano())
		}
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// Predecessors returns the ids of the NATS servers that had the store before this one, the last
// first, as far back as they ended properly: everything that they had acknowledged is on disk. One
// that was killed, or the node of a cluster, leaves none; so does a store out of a backup.
func (s *Server) Predecessors() []string { return slices.Clone(s.predecessors) }
