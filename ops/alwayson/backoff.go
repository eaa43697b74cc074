package alwayson

import "time"

const (
	// apart is the least time between two starts, for workflows that complete at once. It is less
	// than the second within which a run is begun after an end.
	apart = 500 * time.Millisecond
	// The pause is 0 after a first failure, then firstPause, and doubles up to lastPause.
	firstPause = time.Second
	lastPause  = 5 * time.Minute
	// steady is how long a run lives, at least, if its failure is not to be counted with those
	// before it.
	steady = time.Minute
	// startWithin is how long after its record a start may begin a run. Closed runs stay for longer
	// than that, whatever their retention says.
	startWithin = time.Minute
)

// pauseAfter is how long nothing is begun after so many failures in a row.
func pauseAfter(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(firstPause<<min(failures-2, 16), lastPause)
}
