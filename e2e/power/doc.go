// Package power is a disk whose power can be cut: a file system in memory, mounted through FUSE,
// that keeps apart what programs see and what a power cut leaves. It is for tests of what a server
// has promised when it acknowledged a write.
//
// A kill -9 proves nothing about that: the page cache outlives the process. Here a write is
// volatile until its file is synced (fsync, fdatasync, or O_SYNC), and [Disk.Cut] throws away what
// was not.
//
// What survives of names (create, rename, unlink, mkdir, rmdir, truncate) is a choice, [Mode]:
//   - [Journal] is what ext4 and XFS do on Linux: changes of names go through one journal, in
//     order, and a sync of any file or folder commits all of it so far. The data of a file whose
//     name is committed may still be missing. It is harsher than ext4 in one thing: a file that
//     replaces another one by rename, or is truncated and written again, is not flushed by itself.
//   - [Strict] is the letter of POSIX: a name survives only if its folder was synced.
//
// A cut keeps, besides, a random part of what was not synced if it is given dice: a disk may have
// written any of it. The kernel's own write-back counts too: names older than 5 s and data older
// than 30 s are durable.
//
// Invariants: after [Disk.Freeze] no call of any program changes anything, visible or durable, and
// none is answered with success, so that nothing can be acknowledged on the strength of it. Nothing
// that was synced is ever lost or changed by a cut.
//
// Only tests use it. The tree is plain Go and works everywhere, the mount needs Linux, root and
// /dev/fuse.
package power
