package lean

import "time"

// MakeReady is what [Ready] does at first, at once and in any case.
func MakeReady() { (&readiness{most: readyMost, read: Read}).begin(time.Now()) }
