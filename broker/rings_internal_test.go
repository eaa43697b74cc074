package broker

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// Rings of this process are taken by a partition that is owned here, until it is given away: what would not be answered goes by a message.
func TestRingIsTakenByTheOwner(t *testing.T) {
	owned, left := &partition{loop: newLoop()}, &partition{loop: newLoop()}
	left.refuseRings()
	b := &Broker{parts: map[int]*partition{0: owned, 1: left}}
	for n, want := range []bool{true, false, false} {
		if got := b.Ring(n, &schemas.Rings{}, nil); got != want {
			t.Errorf("partition %d: taken %v, want %v", n, got, want)
		}
	}
	if taken, other := len(owned.loop.queue), len(left.loop.queue); taken != 1 || other != 0 {
		t.Errorf("got %d and %d of them on the loops, want 1 and 0", taken, other)
	}
}
