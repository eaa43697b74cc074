package power

import (
	"context"
	"maps"
	"slices"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is an object as FUSE sees it.
type node struct {
	fs.Inode
	disk   *Disk
	object *object
}

// handle is an open file.
type handle struct{ synced bool }

var _ = interface {
	fs.NodeGetattrer
	fs.NodeSetattrer
	fs.NodeStatfser
	fs.NodeLookuper
	fs.NodeReaddirer
	fs.NodeCreater
	fs.NodeMkdirer
	fs.NodeSymlinker
	fs.NodeReadlinker
	fs.NodeUnlinker
	fs.NodeRmdirer
	fs.NodeRenamer
	fs.NodeOpener
	fs.NodeReader
	fs.NodeWriter
	fs.NodeFsyncer
}((*node)(nil))

// enter takes the disk for one call; without power there is nothing to take.
func (n *node) enter() (leave func(), errno syscall.Errno) {
	n.disk.mu.Lock()
	if n.disk.frozen {
		n.disk.mu.Unlock()
		return nil, syscall.EIO
	}
	return n.disk.mu.Unlock, 0
}

func (o *object) attributes(a *fuse.Attr) {
	a.Ino, a.Mode, a.Nlink = o.number, o.kind()|o.mode, 1
	a.Size, a.Blocks = uint64(len(o.data)), uint64(len(o.data)+511)/512
	a.SetTimes(&o.mtime, &o.mtime, &o.mtime)
}

func (o *object) kind() uint32 {
	switch {
	case o.folder:
		return syscall.S_IFDIR
	case o.target != "":
		return syscall.S_IFLNK
	}
	return syscall.S_IFREG
}

func (n *node) child(ctx context.Context, o *object, out *fuse.EntryOut) *fs.Inode {
	o.attributes(&out.Attr)
	return n.NewInode(ctx, &node{disk: n.disk, object: o},
		fs.StableAttr{Mode: o.kind(), Ino: o.number})
}

// Getattr is stat.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	leave, errno := n.enter()
	if errno != 0 {
		return errno
	}
	defer leave()
	n.object.attributes(&out.Attr)
	return 0
}

// Setattr is truncate, chmod and utimes.
func (n *node) Setattr(
	_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut,
) syscall.Errno {
	leave, errno := n.enter()
	if errno != 0 {
		return errno
	}
	defer leave()
	if size, ok := in.GetSize(); ok {
		n.disk.tree.truncate(n.object, int64(size))
	}
	if mode, ok := in.GetMode(); ok {
		n.object.mode = mode & 0o7777
	}
	if at, ok := in.GetMTime(); ok {
		n.object.mtime = at
	}
	n.object.attributes(&out.Attr)
	return 0
}

// Statfs tells of a large disk: the server's limits come from it.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 16 << 20
	*out = fuse.StatfsOut{
		Bsize:   4096,
		Frsize:  4096,
		Blocks:  blocks,
		Bfree:   blocks,
		Bavail:  blocks,
		Files:   1 << 20,
		Ffree:   1 << 20,
		NameLen: 255,
	}
	return 0
}

// Lookup finds a name.
func (n *node) Lookup(
	ctx context.Context, name string, out *fuse.EntryOut,
) (*fs.Inode, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	o := n.object.entries[name]
	if o == nil {
		return nil, syscall.ENOENT
	}
	return n.child(ctx, o, out), 0
}

// Readdir lists a folder.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	var list []fuse.DirEntry
	for _, name := range slices.Sorted(maps.Keys(n.object.entries)) {
		o := n.object.entries[name]
		list = append(list, fuse.DirEntry{Name: name, Ino: o.number, Mode: o.kind()})
	}
	return fs.NewListDirStream(list), 0
}

// Create makes a file and opens it.
func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, nil, 0, errno
	}
	defer leave()
	o := n.object.entries[name]
	switch {
	case o == nil:
		o = n.disk.tree.object(false, mode&0o7777)
		n.disk.tree.link(n.object, name, o)
	case flags&syscall.O_EXCL != 0:
		return nil, nil, 0, syscall.EEXIST
	case flags&syscall.O_TRUNC != 0:
		n.disk.tree.truncate(o, 0)
	}
	return n.child(ctx, o, out), opened(flags), 0, 0
}

func opened(flags uint32) *handle {
	return &handle{synced: flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0}
}

// Mkdir makes a folder.
func (n *node) Mkdir(
	ctx context.Context, name string, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	if n.object.entries[name] != nil {
		return nil, syscall.EEXIST
	}
	o := n.disk.tree.object(true, mode&0o7777)
	n.disk.tree.link(n.object, name, o)
	return n.child(ctx, o, out), 0
}

// Symlink makes a name that stands for another. It is whole or not there, like every name.
func (n *node) Symlink(
	ctx context.Context, target, name string, out *fuse.EntryOut,
) (*fs.Inode, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	if n.object.entries[name] != nil {
		return nil, syscall.EEXIST
	}
	o := n.disk.tree.object(false, 0o777)
	o.target = target
	n.disk.tree.link(n.object, name, o)
	return n.child(ctx, o, out), 0
}

// Readlink tells what a name stands for.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	return []byte(n.object.target), 0
}

// Unlink removes the name of a file. Whoever has it open keeps it.
func (n *node) Unlink(_ context.Context, name string) syscall.Errno {
	return n.remove(name, func(o *object) syscall.Errno {
		if o.folder {
			return syscall.EISDIR
		}
		return 0
	})
}

// Rmdir removes an empty folder.
func (n *node) Rmdir(_ context.Context, name string) syscall.Errno {
	return n.remove(name, func(o *object) syscall.Errno {
		switch {
		case !o.folder:
			return syscall.ENOTDIR
		case len(o.entries) > 0:
			return syscall.ENOTEMPTY
		}
		return 0
	})
}

func (n *node) remove(name string, refuse func(*object) syscall.Errno) syscall.Errno {
	leave, errno := n.enter()
	if errno != 0 {
		return errno
	}
	defer leave()
	o := n.object.entries[name]
	if o == nil {
		return syscall.ENOENT
	}
	if errno := refuse(o); errno != 0 {
		return errno
	}
	n.disk.tree.unlink(n.object, name)
	return 0
}

// Rename moves a name, in the place of another if there is one.
func (n *node) Rename(
	_ context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32,
) syscall.Errno {
	to, ok := newParent.(*node)
	if !ok || flags != 0 {
		return syscall.EINVAL
	}
	leave, errno := n.enter()
	if errno != 0 {
		return errno
	}
	defer leave()
	o, there := n.object.entries[name], to.object.entries[newName]
	switch {
	case o == nil:
		return syscall.ENOENT
	case there != nil && there.folder && len(there.entries) > 0:
		return syscall.ENOTEMPTY
	}
	n.disk.tree.rename(n.object, name, to.object, newName)
	return 0
}

// Open opens a file.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, 0, errno
	}
	defer leave()
	if flags&syscall.O_TRUNC != 0 {
		n.disk.tree.truncate(n.object, 0)
	}
	return opened(flags), fuse.FOPEN_KEEP_CACHE, 0
}

// Read reads what programs see.
func (n *node) Read(
	_ context.Context, _ fs.FileHandle, dest []byte, off int64,
) (fuse.ReadResult, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return nil, errno
	}
	defer leave()
	data := n.object.data[min(off, int64(len(n.object.data))):]
	return fuse.ReadResultData(dest[:copy(dest, data)]), 0
}

// Write is volatile, unless the file was opened to be synced.
func (n *node) Write(
	_ context.Context, f fs.FileHandle, data []byte, off int64,
) (uint32, syscall.Errno) {
	leave, errno := n.enter()
	if errno != 0 {
		return 0, errno
	}
	defer leave()
	n.disk.tree.write(n.object, off, data)
	if h, ok := f.(*handle); ok && h.synced {
		n.disk.tree.sync(n.object)
	}
	return uint32(len(data)), 0
}

// Fsync makes a file or a folder durable.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	leave, errno := n.enter()
	if errno != 0 {
		return errno
	}
	defer leave()
	n.disk.tree.sync(n.object)
	return 0
}
