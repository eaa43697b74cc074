//go:build !linux && !darwin

package diskspace

// Of is not known here.
func Of(string) (free, total uint64) { return 0, 0 }

// Inodes is not known here.
func Inodes(string) (free, total uint64) { return 0, 0 }
