package broker

import (
	"testing"

	"github.com/droverhq/drover/broker/execution"
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
		in := &intake{incarnation: tc.incarnation, since: tc.since}
		if got := in.position(7, tc.at); got != (schemas.Position{Incarnation: tc.want, Sequence: 7, Time: tc.at}) {
			t.Errorf("incarnation %d since %d: a message of %d is at %+v, want incarnation %d", tc.incarnation, tc.since, tc.at, got, tc.want)
		}
	}
}

// A log of a new incarnation is read from its beginning. What the checkpoint has of it is consumed all the same, and nobody hears of it again.
func TestWhatTheCheckpointHasIsLeft(t *testing.T) { // P-9
	for _, tc := range []struct {
		seq  uint64
		at   schemas.Timestamp
		left bool
	}{
		{9, 99, true}, {10, 100, true}, {11, 100, false}, {3, 101, false},
	} {
		p := &partition{b: &Broker{}, runs: map[string]*run{"o": {wid: "o", loading: true}}}
		p.checkpointed.Inbox = schemas.Position{Sequence: 10, Time: 100}
		in := &intake{log: inboxLog, incarnation: 1, since: 100}
		p.b.recordLimit.Store(1 << 20)
		p.intake(in, &opened{message: &message{wid: "o", at: tc.at, event: execution.Child{Report: &schemas.ChildReport{}}, log: inboxLog}, seq: tc.seq})
		if left := len(p.runs["o"].mailbox) == 0; left != tc.left || in.at != tc.seq {
			t.Errorf("message %d of %d: left %v, read up to %d; want %v, and it", tc.seq, tc.at, left, in.at, tc.left)
		}
	}
}
