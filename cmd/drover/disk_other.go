//go:build !linux && !darwin

package main

// diskSpace is not known here.
func diskSpace(string) (free, total uint64) { return 0, 0 }
