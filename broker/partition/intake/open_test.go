package intake

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// stream has its first and last sequence, and the times of messages; -1 is one that cannot be read.
type stream struct {
	first, last uint64
	times       map[uint64]int64
}

var errUnread = errors.New("unread")

func (s *stream) StreamState(context.Context, string) (first, last uint64, err error) {
	return s.first, s.last, nil
}

func (s *stream) GetSeq(_ context.Context, _ string, seq uint64) (*natsconn.Stored, error) {
	switch at, ok := s.times[seq]; {
	case !ok:
		return nil, natsconn.ErrNotFound
	case at < 0:
		return nil, errUnread
	default:
		return &natsconn.Stored{Seq: seq, Time: time.Unix(0, at)}, nil
	}
}

// A log is read on after its checkpoint, and from its beginning if the stream has lost what was
// consumed, or if an incarnation has begun that the checkpoint does not know.
func TestWhereALogIsReadFrom(t *testing.T) { // P-9
	at := func(incarnation uint32, seq uint64, at schemas.Timestamp) schemas.Position {
		return schemas.Position{Incarnation: incarnation, Sequence: seq, Time: at}
	}
	for _, tc := range []struct {
		name                string
		log                 int
		stream              stream
		checkpoint, witness schemas.Position
		from                uint64
		lost                uint32
		err                 error
	}{
		{"new", Inbox, stream{last: 9}, at(0, 0, 0), at(0, 0, 0), 1, 0, nil},
		{"as it was", Inbox, stream{1, 9, map[uint64]int64{7: 70}}, at(0, 5, 50), at(0, 7, 70), 6, 0, nil},
		{"purged since", Inbox, stream{8, 9, nil}, at(0, 5, 50), at(0, 7, 70), 6, 0, nil},
		{"shorter", Inbox, stream{1, 6, nil}, at(0, 5, 50), at(0, 7, 70), 1, 1, nil},
		{"another in its place", Inbox, stream{1, 9, map[uint64]int64{7: 71}}, at(3, 5, 50), at(3, 7, 70), 1, 4, nil},
		{"a hole", Inbox, stream{1, 9, nil}, at(0, 5, 50), at(0, 7, 70), 1, 1, nil},
		{"a hole that a purge makes", Signals, stream{1, 9, nil}, at(0, 5, 50), at(0, 7, 70), 6, 0, nil},
		{"unread", Inbox, stream{1, 9, map[uint64]int64{7: -1}}, at(0, 5, 50), at(0, 7, 70), 0, 0, errUnread},
		{"a later incarnation", Inbox, stream{1, 9, map[uint64]int64{2: 70}}, at(0, 5, 50), at(1, 2, 70), 1, 0, nil},
	} {
		l, lost, err := Open(t.Context(), &tc.stream, Place{Number: tc.log, Checkpoint: tc.checkpoint, Witness: tc.witness})
		if !errors.Is(err, tc.err) || lost != tc.lost {
			t.Errorf("%s: got incarnation %d, %v; want %d, %v", tc.name, lost, err, tc.lost, tc.err)
			continue
		}
		if err == nil && (l.From != tc.from || l.Done.Position() != tc.checkpoint) {
			t.Errorf("%s: read from %d, and done to %+v; want %d, and the checkpoint", tc.name, l.From, l.Done.Position(), tc.from)
		}
	}
}

// After a lost end the inbox is read from its beginning: what was read before says nothing of how
// far that is.
func TestBacklogAfterALostEnd(t *testing.T) {
	var in Intake[int]
	witness := schemas.Position{Sequence: 9, Time: 90}
	l, _, err := Open(t.Context(), &stream{first: 1, last: 3}, Place{Checkpoint: witness, Witness: witness})
	if err != nil {
		t.Fatal(err)
	}
	in.Logs[Inbox] = l
	for seq, done := range []bool{false, false, false, true} {
		if seq > 0 {
			l.Enter(uint64(seq), schemas.Timestamp(90+seq))
		}
		if got := in.BacklogDone(); got != done {
			t.Errorf("at %d of %d: got %v, want %v", seq, l.End, got, done)
		}
	}
}

// What is consumed is purged when it is much, or after a rest, and never by the checkpoint of
// another incarnation.
func TestWhenALogIsPurged(t *testing.T) { // P-9
	l := &Log{incarnation: 1}
	at := func(seq uint64) schemas.Position { return schemas.Position{Incarnation: 1, Sequence: seq} }
	start := time.Unix(1000, 0)
	for _, tc := range []struct {
		name string
		keep schemas.Position
		now  time.Time
		want bool
	}{
		{"the first time", at(1), start, true},
		{"nothing more", at(1), start.Add(time.Hour), false},
		{"little", at(5), start.Add(time.Second), false},
		{"much", at(1 + purgeBatch), start.Add(time.Second), true},
		{"little, after a rest", at(2 + purgeBatch), start.Add(time.Second + RestEvery + 1), true},
		{"of another incarnation", schemas.Position{Sequence: 1 << 30}, start.Add(time.Hour), false},
	} {
		if got := l.ToPurge(tc.keep, tc.now, RestEvery); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
		if tc.want {
			l.Purged(tc.keep.Sequence)
		}
	}
}
