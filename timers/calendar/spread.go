package calendar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
)

// spread returns whole milliseconds from 0 on and below limit, computed from the name of a
// schedule and a slot.
func spread(schedule string, slot time.Time, limit time.Duration) time.Duration {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", schedule, slot.UnixMilli()))
	n, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]),
		uint64(max(0, limit+time.Millisecond-1)/time.Millisecond))
	return time.Duration(n) * time.Millisecond
}
