//go:build !linux && !darwin

package embedded

// freeOnDisk is not known here.
func freeOnDisk(string) int64 { return 0 }
