//go:build race

package claims_test

import "time"

// struggleFor is short under the race detector: Go 1.26 crashes there when timers fire very often in one bubble
// (golang/go#78156).
const struggleFor = 20 * time.Second
