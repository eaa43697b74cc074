package runs

import "github.com/droverhq/drover/schemas"

// End is where the history of a run ends: what its next record follows, and by what it is read
// again.
type End struct {
	// Sequence, Hash and At are those of the last record: where it stands in the stream, its
	// SHA-256, and the time that its events count from. Complete: it says everything, as it is the
	// first or has a snapshot.
	Sequence uint64
	Hash     []byte
	At       schemas.Timestamp
	Complete bool
	// Snapshot is the sequence of the last record with a snapshot, 0 if there is none, and Since
	// how many events came after it.
	Snapshot uint64
	Since    int
}

// Append takes a record that is in the history now, the next one of the run. Its events begin with
// the id first.
func (e *End) Append(
	seq uint64, hash []byte, at schemas.Timestamp, first int64, events int, snapshot bool,
) {
	e.Sequence, e.Hash, e.At = seq, hash, at
	e.Since += events
	if snapshot {
		e.Snapshot, e.Since = seq, 0
	}
	e.Complete = first == 1 || snapshot
}
