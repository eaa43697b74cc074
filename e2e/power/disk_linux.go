package power

import (
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Options of [Mount]. The zero value is a good disk.
type Options struct {
	// Mode says which names survive a cut. Defaults to Journal.
	Mode Mode
}

// Disk is a mounted file system whose power can be cut. Its methods may be called from any
// goroutine; Cut and Close are for one at a time.
type Disk struct {
	dir    string
	server *fuse.Server

	mu     sync.Mutex // guards what follows, and every object
	tree   *tree
	frozen bool
}

// Mount makes an empty disk at dir, an empty folder that exists. It needs root and /dev/fuse.
func Mount(dir string, o Options) (*Disk, error) {
	switch o.Mode {
	case 0:
		o.Mode = Journal
	case Journal, Strict:
	default:
		return nil, fmt.Errorf("power: Mode is %d: use Journal (%d) or Strict (%d)",
			o.Mode, Journal, Strict)
	}
	d := &Disk{dir: dir, tree: newTree(o.Mode)}
	return d, d.mount()
}

func (d *Disk) mount() error {
	long := time.Hour // nobody changes anything behind the kernel's back
	server, err := fs.Mount(d.dir, &node{disk: d, object: d.tree.root}, &fs.Options{
		EntryTimeout: &long, AttrTimeout: &long,
		RootStableAttr: &fs.StableAttr{Ino: d.tree.root.number},
		MountOptions: fuse.MountOptions{
			FsName: "power", Name: "power", DirectMountStrict: true, MaxWrite: 1 << 20,
			Logger: log.New(io.Discard, "", 0),
		},
	})
	if err != nil {
		return fmt.Errorf("power: mount %s: root and /dev/fuse are needed: %w", d.dir, err)
	}
	d.server = server
	return nil
}

// Freeze is the moment of the power cut: from now on every call of every program fails with an I/O
// error and changes nothing. Kill the programs, then call [Disk.Cut].
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frozen = true
}

// Cut throws away what was not durable and mounts the rest anew, writable. It freezes the disk if
// that has not been done. No program may have a file of the disk open. With dice a random part of
// what was not synced survives.
func (d *Disk) Cut(dice *rand.Rand) error {
	d.Freeze()
	if err := d.server.Unmount(); err != nil {
		return fmt.Errorf("power: unmount %s: end the programs that use it first: %w", d.dir, err)
	}
	d.mu.Lock()
	d.tree.cut(dice)
	d.frozen = false
	d.mu.Unlock()
	return d.mount()
}

// Syncs counts the calls that made a file or a folder durable.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tree.syncs
}

// Close unmounts the disk. What was on it is gone.
func (d *Disk) Close() error {
	if err := d.server.Unmount(); err != nil {
		return errors.Join(fmt.Errorf("power: unmount %s", d.dir), err)
	}
	return nil
}
