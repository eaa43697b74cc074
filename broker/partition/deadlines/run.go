package deadlines

import (
	"encoding/binary"
	"slices"

	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/internal/shortid"
	"github.com/droverhq/drover/schemas"
)

// Run is what stays in memory of an open run that nothing happens to: where its history ends, and
// which alarm is armed. With it the next message needs few reads, from any replica: an answer that
// does not reach the last record is refused (P-2). Without it the leader would be asked which run
// is the latest, and the alarm of the run be armed anew, or looked for after its end.
//
// Nothing else may be needed: what is not in the history, such as a heartbeat or a question to the
// decider, keeps a run in memory. Folded it takes some 2 KB; to keep the fold itself, encoded,
// would take as much as the history does.
type Run struct {
	RunID    string
	Sequence uint64 // of its last record
	Alarm    uint64 // of the armed message
	// Worker is the number of the worker that decided last, if it wants the next task; else 0.
	Worker uint64
	Due    schemas.Timestamp
	// Delayed are the activities whose tasks wait for their time. Of the others none does, whatever
	// the history says. Instants do not tell: a deadline that is read counts from the server's time
	// of its record, and here from what was known of that.
	Delayed  []int64
	Complete bool // the last record says everything
	// If so, it is known by its hash, and its time need not be read (runs.RangeRead).
	Mark uint64
	At   schemas.Timestamp
}

// Waits tells whether the task of an activity is still to be put on its list.
func (k *Run) Waits(a *execution.Activity) bool {
	_, waits := slices.BinarySearch(k.Delayed, a.ScheduledID)
	return waits
}

// pack appends what is kept of a run to b.
func (k *Run) pack(b []byte) []byte {
	b = binary.AppendUvarint(b, k.Sequence)
	b = binary.AppendUvarint(b, bit(len(k.Delayed) > 0)<<1|bit(k.Complete))
	b = binary.AppendUvarint(b, k.Alarm)
	b = binary.AppendUvarint(b, k.Worker)
	b = binary.AppendVarint(b, int64(k.Due))
	if n := len(k.Delayed); n > 0 { // mostly none
		b = binary.AppendUvarint(b, uint64(n))
		for _, id := range k.Delayed {
			b = binary.AppendUvarint(b, uint64(id))
		}
	}
	if k.Complete {
		b = binary.AppendVarint(b, int64(k.Due-k.At)) // shorter than the instant
		b = binary.LittleEndian.AppendUint64(b, k.Mark)
	}
	return shortid.Append(b, k.RunID)
}

// unpack reads what pack wrote.
func unpack(b []byte) *Run {
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[max(n, 0):]
		return v
	}
	k := &Run{Sequence: next()}
	flags := next()
	k.Complete, k.Alarm, k.Worker = flags&1 != 0, next(), next()
	due, n := binary.Varint(b)
	b = b[max(n, 0):]
	k.Due = schemas.Timestamp(due)
	if flags&2 != 0 {
		k.Delayed = make([]int64, next())
		for i := range k.Delayed {
			k.Delayed[i] = int64(next())
		}
	}
	if k.Complete {
		before, n := binary.Varint(b)
		b = b[max(n, 0):]
		k.At, k.Mark, b = k.Due-schemas.Timestamp(before), binary.LittleEndian.Uint64(b), b[8:]
	}
	k.RunID = shortid.Text(b)
	return k
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
