package diskspace

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// least is how much must be free for a store to be worth opening again, of a large file system
	// and of a small one.
	least      = 64 << 20
	leastShare = 10
)

// Enough tells whether the file system of a folder has room for a store to be opened again after it
// was full: a tenth of it, or 64 MiB, and an inode. One that does not tell has.
func Enough(dir string) bool {
	free, total := Of(dir)
	inodes, all := Inodes(dir)
	return (total == 0 || free >= min(least, total/leastShare)) && (all == 0 || inodes > 0)
}

// existing is the folder, or the first one above it that is there.
func existing(dir string) string {
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || up == dir {
			return dir
		}
		dir = up
	}
}

// Full says that the file system of a folder, which may be missing, is full, and how much of it is
// free; "" if it has Enough, or does not tell.
func Full(dir string) string {
	dir = existing(dir)
	if Enough(dir) {
		return ""
	}
	if free, total := Inodes(dir); total > 0 && free == 0 {
		return fmt.Sprintf(
			"disk full: the file system of %s has no free inode of %d, whatever bytes are free",
			dir, total)
	}
	free, total := Of(dir)
	return fmt.Sprintf("disk full: the file system of %s has %d KiB free of %d KiB",
		dir, free>>10, total>>10)
}
