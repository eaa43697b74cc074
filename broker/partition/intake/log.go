package intake

import (
	"time"

	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// Log is a partition's place in one of its two logs. [Open] finds it.
type Log struct {
	Number int
	Stream string
	Filter string // subjects; "" for all of the stream
	// From is where reading begins, End the last sequence at take-over: what is up to there is the
	// backlog.
	From, End uint64
	Done      watermark.Tracker
	Allowance Allowance

	// incarnation counts how often the stream lost a tail; messages stamped after since belong to
	// it, older ones to the one before (P-9).
	incarnation uint32
	since       schemas.Timestamp

	read schemas.Position // the last message that came in
	// its place in the stream as it is now, which begins anew after a lost end
	at uint64

	purged uint64    // the sequence before which nothing is left
	tidied time.Time // when it was last purged
}

// Enter takes the next message in the log's order.
func (l *Log) Enter(seq uint64, at schemas.Timestamp) (schemas.Position, *watermark.Completion) {
	pos := l.position(seq, at)
	l.read, l.at = pos, seq
	return pos, l.Done.Enter(pos)
}

// position places a message in its incarnation.
func (l *Log) position(seq uint64, at schemas.Timestamp) schemas.Position {
	pos := schemas.Position{Incarnation: l.incarnation, Sequence: seq, Time: at}
	if l.since != 0 && pos.Time <= l.since && pos.Incarnation > 0 {
		pos.Incarnation--
	}
	return pos
}

// At is the sequence of the last message that came in.
func (l *Log) At() uint64 { return l.at }

// Ended tells whether the backlog has been read.
func (l *Log) Ended() bool { return l.at >= l.End }

const (
	// purgeBatch is how many consumed messages may lie in a log before they are purged.
	purgeBatch = 2000
	// RestEvery is after how long fewer are purged too.
	RestEvery = time.Minute
)

// ToPurge tells whether the messages before a position are to be purged now. rest is after how long
// few are purged too: few large messages fill a limited log, and retention waits for the messages
// of a run to be gone. A log of a new incarnation is left alone until its checkpoint belongs to it.
func (l *Log) ToPurge(keep schemas.Position, now time.Time, rest time.Duration) bool {
	batch := uint64(purgeBatch)
	if now.Sub(l.tidied) > rest {
		batch = 1
	}
	if keep.Incarnation != l.incarnation || keep.Sequence < l.purged+batch {
		return false
	}
	l.tidied = now
	return true
}

// Purged notes that nothing is left before a sequence.
func (l *Log) Purged(seq uint64) { l.purged = seq }
