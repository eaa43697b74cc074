package memlimit

import (
	"os"
	"sync"
)

// ballastSize is how much is taken. Larger ones saved no more CPU (ADR 0034), and each costs its
// size while there is work.
const ballastSize = 16 << 20

var (
	ballast []byte
	once    sync.Once
)

// Ballast makes collections rarer while little is alive. Go collects when the heap has doubled. In
// a server that has just begun a few megabytes are alive, and work doubles them some twenty times a
// second. The ballast counts as alive, so there may be that much more garbage before the next
// collection; it takes no memory itself, since it is never written to.
//
// It is for the main function of a process, like [Keep]; further calls do nothing. Whoever has set
// GOGC or GOMEMLIMIT has decided, and gets none: a limit would count it.
//
// Considered: a higher GOGC. It costs most where most is alive.
func Ballast() {
	once.Do(func() { ballast = make([]byte, ballastFor(os.Getenv)) })
}

// ballastFor is how much ballast a process with this environment gets, in bytes.
func ballastFor(environment func(string) string) int {
	if environment("GOGC") != "" || environment("GOMEMLIMIT") != "" {
		return 0
	}
	return ballastSize
}

// without is a reading without the ballast.
func (m Reading) without(ballast uint64) Reading {
	m.Footprint -= min(ballast, m.Footprint)
	m.Live -= min(ballast, m.Live) // 0 before the first collection
	return m
}
