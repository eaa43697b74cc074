package diskspace

import "time"

// fillRate is what comes in at most, in bytes a second, on most disks.
const fillRate = 100_000_000

// FillTime is how long so many bytes take to come in, but not less than least nor more than most,
// which is some seconds: whoever looks again by then sees that they do.
func FillTime(bytes int64, least, most time.Duration) time.Duration {
	bytes = min(max(bytes, 0), int64(most/time.Second)*fillRate)
	return max(time.Duration(bytes)*time.Second/fillRate, least)
}
