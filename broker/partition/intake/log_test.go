package intake

import (
	"testing"

	"github.com/droverhq/drover/schemas"
)

// What was stored up to the last message of the incarnation before belongs to that, the message itself as well; there is none before the first.
func TestIncarnationOfAMessage(t *testing.T) { // P-9
	for _, tc := range []struct {
		incarnation uint32
		since, at   schemas.Timestamp
		want        uint32
	}{
		{2, 100, 99, 1},
		{2, 100, 100, 1},
		{2, 100, 101, 2},
		{2, 0, 99, 2}, // nobody knows when it began: all that is there is read as its
		{0, 100, 99, 0},
	} {
		in := &Log{incarnation: tc.incarnation, since: tc.since}
		if got := in.position(7, tc.at); got != (schemas.Position{Incarnation: tc.want, Sequence: 7, Time: tc.at}) {
			t.Errorf("incarnation %d since %d: a message of %d is at %+v, want incarnation %d", tc.incarnation, tc.since, tc.at, got, tc.want)
		}
	}
}
