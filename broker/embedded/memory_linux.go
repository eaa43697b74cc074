package embedded

import (
	"fmt"
	"syscall"
)

// tmpfs is the kernel's number for a file system in memory.
const tmpfs = 0x01021994

// roomInMemory refuses a folder that is not in memory, or has less than so many bytes left.
func roomInMemory(dir string, bytes uint64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if st.Type != tmpfs {
		return fmt.Errorf("%s is not in memory: mount a tmpfs there", dir)
	}
	if free := st.Bavail * uint64(st.Bsize); free < bytes {
		return fmt.Errorf("%s has %d bytes left, and %d are needed: make it larger",
			dir, free, bytes)
	}
	return nil
}
