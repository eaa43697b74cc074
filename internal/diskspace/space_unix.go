//go:build linux || darwin

package diskspace

import "syscall"

// Of returns the bytes that are free, for us, and that there are on the file system of a folder; 0
// if it does not tell.
func Of(dir string) (free, total uint64) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize)
}

// Inodes returns how many files can be made, and how many there can be, on the file system of a
// folder; 0 if it does not tell, or makes as many as there is room for, as btrfs does.
func Inodes(dir string) (free, total uint64) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, 0
	}
	return inodes(s.Ffree, s.Files)
}
