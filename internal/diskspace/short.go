package diskspace

import "fmt"

// Short says what the file system of a folder, which may be missing, has run out of, bytes or
// inodes; "" if of neither, or if it does not tell.
func Short(dir string) string {
	dir = existing(dir)
	if free, total := Inodes(dir); total > 0 && free == 0 {
		return fmt.Sprintf(
			"its file system has no free inode of %d, whatever bytes are free: remove files there",
			total)
	}
	if free, total := Of(dir); total > 0 && free == 0 {
		return "its file system has no free byte: make room there"
	}
	return ""
}

// inodes reads what a file system says of them: some say 0 of 0, some that more are free than there
// are.
func inodes(free, total uint64) (uint64, uint64) {
	if free > total {
		return 0, 0
	}
	return free, total
}
