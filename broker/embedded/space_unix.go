//go:build linux || darwin

package embedded

import "syscall"

// freeOnDisk is the bytes that we may still write on the file system of a folder, or 0 if it does not tell.
func freeOnDisk(dir string) int64 {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0
	}
	return int64(s.Bavail * uint64(s.Bsize))
}
