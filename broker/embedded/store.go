package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/droverhq/drover/internal/diskspace"
)

const (
	lockFile    = "drover.lock"
	storeIDFile = "store-id"
	storeIDLen  = 26 // of rand.Text
)

// store is a folder that this process has for itself until close.
type store struct {
	dir       string
	id        string
	temporary bool
	lock      *os.File // nil for a temporary one, whose name nobody else can know
}

// openStore opens the store in dir, or makes a temporary one when dir is empty.
func openStore(dir string) (*store, error) {
	if dir == "" {
		tmp, err := os.MkdirTemp("", "drover-memory-")
		if err != nil {
			return nil, fmt.Errorf(
				"%w: no temporary folder: set TMPDIR to one that can be written: %w",
				ErrStoreUnusable, err)
		}
		return &store{dir: tmp, id: rand.Text(), temporary: true}, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, unusable(dir, err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, unusable(dir, err)
	}
	lock, err := lockStore(dir)
	if err != nil {
		return nil, err
	}
	id, err := storeID(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return &store{dir: dir, id: id, lock: lock}, nil
}

func (s *store) close() error {
	if s.temporary {
		return os.RemoveAll(s.dir)
	}
	// The file stays: if it were removed, a process that has it open already would lock a file
	// nobody else sees.
	return errors.Join(s.lock.Truncate(0), s.lock.Close())
}

// gone tells whether the folder is another one by now than that which was opened. The NATS server
// has files open, and writes and syncs them wherever they are, also where no name leads to them any
// more: it would acknowledge what no start finds again.
func (s *store) gone() error {
	if s.temporary {
		return nil
	}
	ours, err := s.lock.Stat()
	if err != nil {
		return nil //nolint:nilerr // closed with the store
	}
	there, err := os.Stat(filepath.Join(s.dir, lockFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(ours, there) {
		return fmt.Errorf("%w: %s", ErrStoreGone, s.dir)
	}
	return nil // what else keeps one from looking keeps nobody from writing
}

// lockStore takes the lock and writes into the file who has it, for the error of the next one.
func lockStore(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, unusable(dir, err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			return nil, fmt.Errorf(
				"%w: %s is held by %s: connect to that server or stop it, or choose another StoreDir",
				ErrStoreLocked, dir, holder(f))
		}
		return nil, fmt.Errorf(
			"%w: %s cannot be locked: use a local file system that has flock: %w",
			ErrStoreUnusable, dir, err)
	}
	host, _ := os.Hostname() // an unknown host still leaves the pid
	line := fmt.Appendf(nil, "%d %s\n", os.Getpid(), host)
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(unusable(dir, err), f.Close())
	}
	if _, err := f.WriteAt(line, 0); err != nil {
		return nil, errors.Join(unusable(dir, err), f.Close())
	}
	return f, nil
}

func holder(f *os.File) string {
	buf := make([]byte, 512)
	n, _ := f.ReadAt(buf, 0) // an empty or torn file reads as an unknown holder
	var pid int
	var host string
	switch k, _ := fmt.Sscanf(string(buf[:n]), "%d %s", &pid, &host); {
	case k == 0:
		return "an unknown process"
	case pid == os.Getpid():
		return fmt.Sprintf("pid %d, this process", pid)
	case host == "":
		return fmt.Sprintf("pid %d", pid)
	default:
		return fmt.Sprintf("pid %d on %s", pid, host)
	}
}

// storeID reads the store's id or, in a new store, makes it.
func storeID(dir string) (string, error) {
	path := filepath.Join(dir, storeIDFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := rand.Text()
		if err := writeDurably(path, id+"\n"); err != nil {
			return "", unusable(dir, err)
		}
		return id, nil
	}
	if err != nil {
		return "", unusable(dir, err)
	}
	id := strings.TrimSpace(string(b))
	if len(id) != storeIDLen || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		return "", fmt.Errorf(
			"%w: %s does not hold an id: restore it from a backup, or delete it; "+
				"without it claims of earlier starts are waited for until they expire",
			ErrStoreDamaged, path)
	}
	return id, nil
}

// writeDurably leaves the whole text or no file, also after a power cut.
func writeDurably(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// unusable names the way out of what the file system said.
func unusable(dir string, err error) error {
	way := "check the folder, or choose another StoreDir"
	switch short := diskspace.Short(dir); {
	case errors.Is(err, syscall.ENOSPC) && short != "":
		way = short + ", or choose another StoreDir"
	case errors.Is(err, fs.ErrPermission):
		way = "run as its owner, give this user the right to write there, or choose another StoreDir"
	}
	return fmt.Errorf("%w: %s: %s: %w", ErrStoreUnusable, dir, way, err)
}

// short says, for an error that does not, that nothing can be written since the file system has run
// out of something.
func (s *store) short() string {
	if short := diskspace.Short(s.dir); short != "" {
		return "; " + s.dir + ": " + short
	}
	return ""
}
