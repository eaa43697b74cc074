package embedded

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// endedFile says that the last server of the store has ended properly, with everything on disk, and which it was; in further
// lines those before it, as long as each of them has ended so. It is there between that end and the next start only.
const endedFile = "ended"

// mostEnded bounds how many servers it names. A partition that none of them has taken over is looked through.
const mostEnded = 64

// takeEnded reads and removes the mark. It counts only once it is gone for good: a power cut in the middle of this start must
// not find it again.
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
	s.predecessors = strings.Fields(string(b))
	return nil
}

// markEnded syncs what the server has left and then says so. In ProfileDev the server ends with its last second unsynced.
func (s *Server) markEnded() error {
	err := filepath.WalkDir(filepath.Join(s.store.dir, server.JetStreamStoreDir), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(path)
	})
	if err != nil {
		return err
	}
	all := append([]string{s.srv.ID()}, s.predecessors...)
	return writeDurably(filepath.Join(s.store.dir, endedFile), strings.Join(all[:min(len(all), mostEnded)], "\n")+"\n")
}

// Predecessors returns the ids of the NATS servers that had the store before this one, the last first, as far back as they
// ended properly: everything that they had acknowledged is on disk. One that was killed, or the node of a cluster, leaves
// none.
func (s *Server) Predecessors() []string { return slices.Clone(s.predecessors) }
