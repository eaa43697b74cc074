package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// memoryFiles is where Linux keeps files in memory.
	memoryFiles = "/dev/shm"
	stagePrefix = "drover-stage-"
	// minStage is how many bytes must be free there. A group takes up to 1 MiB for some
	// milliseconds.
	minStage = 16 << 20
	// The server's name for the folder, within that of a stream, where it gathers the messages of
	// an atomic batch.
	batchFolder = "batches"
)

// ErrNoStage reports that batches cannot be gathered in memory here. They work all the same, but
// each costs several syncs.
var ErrNoStage = errors.New("batches cannot be gathered in memory")

// stage is a folder in memory for the batches under way. NATS 2.15 gathers each batch for a stream
// with one copy in files of its own and syncs those, so that it can finish a batch that a crash has
// cut: 2 to 3 ms before the batch itself is written and synced. Records of a group need no such
// thing. Each is whole by itself, none is acknowledged before the sync of them all, and none is at
// all if the group is refused. So the files are kept where a sync costs nothing, and are gone with
// the power; what a cut leaves of a group is then what it would leave of single messages.
type stage struct {
	mu   sync.Mutex
	dir  string   // "" until it is needed
	lock *os.File // the folder itself: the kernel drops the lock with the process
}

// Stage lets the server gather atomic batches for a stream that exists in memory. It may be called
// again. The error is [ErrNoStage] when batches would be slower than single messages: there is no
// such memory (only Linux has it), it is nearly full, or the profile does not sync each write.
func (s *Server) Stage(stream string) error {
	if s.opts.Profile != ProfileSingle {
		return fmt.Errorf("%w: profile %v does not sync each write", ErrNoStage, s.opts.Profile)
	}
	// The account of clients without one.
	dir := filepath.Join(s.store.dir, server.JetStreamStoreDir, "$G", "streams", stream)
	if strings.ContainsAny(stream, `/\`) || stream == "" {
		return fmt.Errorf("%w: %q is not the name of a stream", ErrNoStage, stream)
	}
	s.stage.mu.Lock()
	defer s.stage.mu.Unlock()
	if err := s.stage.open(s.store.id); err != nil {
		return fmt.Errorf("%w: %w", ErrNoStage, err)
	}
	target := filepath.Join(s.stage.dir, stream)
	link := filepath.Join(dir, batchFolder)
	if have, err := os.Readlink(link); err == nil && have == target {
		return nil
	}
	if err := os.MkdirAll(target, 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrNoStage, err)
	}
	// A link of an earlier start, or a folder that is empty: the server empties it when it starts.
	// A batch under way keeps it.
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNoStage, err)
	}
	if err := os.Symlink(target, link); err != nil {
		return fmt.Errorf("%w: %w", ErrNoStage, err)
	}
	return nil
}

// open makes the folder of this start, after those that dead servers have left.
func (g *stage) open(store string) error {
	if g.dir != "" {
		return nil
	}
	if err := roomInMemory(memoryFiles, minStage); err != nil {
		return err
	}
	clearStages()
	dir, err := os.MkdirTemp(memoryFiles, stagePrefix+store+"-")
	if err != nil {
		return err
	}
	if g.lock, err = os.Open(dir); err != nil {
		return err
	}
	if err := flock(g.lock); err != nil {
		return errors.Join(err, g.lock.Close())
	}
	g.dir = dir
	return nil
}

// clearStages removes what servers have left that were killed, of any store: some never start
// again. One that is being made and has no lock yet may be taken for such; its server then sends
// records one by one.
func clearStages() {
	for _, dir := range matches(memoryFiles, stagePrefix+"*") {
		f, err := os.Open(dir)
		if err != nil {
			continue // another user's
		}
		if flock(f) == nil {
			_ = os.RemoveAll(dir) // the next start tries again
		}
		_ = f.Close() // nothing was written
	}
}

func (g *stage) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dir == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(g.dir), g.lock.Close())
	g.dir = ""
	return err
}
