// Package intake keeps what the owner of a partition knows of the messages that come in: its place
// in the two logs, the signals that came before the start of their workflow, and the dead letters.
//
// Each part is a type of its own. None calls the partition: whoever holds an Intake asks it, and
// does what it answers. Only Open and Unroutable read or write streams, through interfaces that
// they declare.
//
// Invariants:
//   - A log is read in its order, and its messages get positions that only grow (P-1, P-9).
//   - What is read and not judged is bounded by the allowance of its log.
//   - A signal without a workflow is not judged before the inbox has been read up to where it ended
//     when the signal came (P-12).
//
// All of it belongs to the loop of the partition, except for Allowance, on which readers wait.
package intake

import (
	"github.com/droverhq/drover/broker/partition/watermark"
	"github.com/droverhq/drover/schemas"
)

// The two logs that a partition reads, and what comes by neither.
const (
	Inbox = iota
	Signals
	None
)

// Intake is the intake of one term of a partition. M is a message that waits.
type Intake[M any] struct {
	Logs       [2]*Log           // the inbox and the signals; nil before the take-over
	Effects    watermark.Tracker // of records, by their sequence in the history
	Early      Early[M]
	Letters    Letters
	Unroutable Unroutable
	// Purging: consumed messages of a log are being purged.
	Purging bool
}

// Positions are up to where each log is done.
func (in *Intake[M]) Positions() [2]schemas.Position {
	return [2]schemas.Position{in.Logs[Inbox].Done.Position(), in.Logs[Signals].Done.Position()}
}

// Read are the last messages that came in.
func (in *Intake[M]) Read() [2]schemas.Position {
	return [2]schemas.Position{in.Logs[Inbox].read, in.Logs[Signals].read}
}

// BacklogDone tells whether the inbox has been read up to where it ended at the take-over.
func (in *Intake[M]) BacklogDone() bool { return in.Logs[Inbox].Ended() }
