package handover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// top is the highest record that is known to be committed.
type top struct {
	Sequence uint64
	digest   string
}

// Reached notes a committed record. It goes into the checkpoint as the witness of the history's
// incarnation.
func (ho *Handover) Reached(sequence uint64, hash []byte) {
	if sequence > ho.Top.Sequence {
		ho.Top = top{Sequence: sequence, digest: digestOf(hash)}
	}
}

func digestOf(hash []byte) string { return hex.EncodeToString(hash[:min(len(hash), 16)]) }

// lostRecords tells whether the history has lost records that were acknowledged: a server that does
// not sync each write loses its last ones with the power, and any server those after a damaged
// place of its last file. The checkpoint names the highest record that was committed before it, and
// a hash: if the record is not there, or another one is in its place, what the checkpoint says of
// messages was said of records that are gone (P-9).
//
// Retention must therefore leave the highest record alone, or the messages of its run would be read
// again.
//
// A gap further up is not seen here: the runs around it tell, see fold.
func (ho *Handover) lostRecords(ctx context.Context) (bool, error) {
	c := &ho.Checkpointed
	ho.Top = top{Sequence: c.History, digest: c.Witness}
	why := ""
	if c.History == 0 { // of an earlier version, or of an owner before the first record
		if end := max(c.Effects, c.Fence); ho.Fence <= end {
			why = fmt.Sprintf("records %d to %d were acknowledged and are gone", ho.Fence, end)
		}
	} else {
		// The number alone says nothing: a late write of the former owner may stand after our
		// fence.
		m, err := ho.Env.Conn.GetSeq(ctx, ho.Env.NS.StreamHistory(ho.Partition), c.History)
		switch {
		case errors.Is(err, natsconn.ErrNotFound) && ho.Fence <= c.History:
			why = fmt.Sprintf("records %d to %d were acknowledged and are gone", ho.Fence, c.History)
		case errors.Is(err, natsconn.ErrNotFound):
			why = fmt.Sprintf("record %d was acknowledged and is gone, and what stood before it perhaps", c.History)
		case err != nil:
			return false, fmt.Errorf("read record %d: %w", c.History, err)
		default:
			if hash := sha256.Sum256(m.Data); digestOf(hash[:]) != c.Witness {
				why = fmt.Sprintf("record %d is another one than that which was acknowledged", c.History)
			}
		}
	}
	if why == "" {
		return false, nil
	}
	ho.Top = top{}
	return true, ho.sayLost(ctx, why)
}

// sayLost writes down that something is lost, where an operator finds it after the log is gone.
func (ho *Handover) sayLost(ctx context.Context, why string) error {
	stream := ho.Env.NS.StreamHistory(ho.Partition)
	ho.Log.WithField("stream", stream).
		Error("the history has lost its end: " + why + "; the messages that are still in the " +
			"inbox and the signals are read again")
	place := dead.Place{
		Partition: strconv.Itoa(ho.Partition), Stream: "history",
		Incarnation: strconv.FormatInt(int64(ho.host.Now()), 10), Sequence: ho.Fence,
	}
	return dead.Bury(ctx, ho.Env.Conn, ho.Env.NS, place, schemas.DeadLetter{
		Reason: dead.ReasonLostRecords, Subject: ho.Env.NS.AllHistory(ho.Partition), Time: ho.host.Now(),
		Details: "partition " + strconv.Itoa(ho.Partition) + ": " + why +
			". Runs that were in them only are begun again if their start is still " +
			"in the inbox; of the others nothing is known any more",
	})
}

// readAgain forgets what the checkpoint says of both logs. Every message that is still there comes
// again: the positions in the runs' own records tell what each has consumed, and the dead letters
// what none will.
func (ho *Handover) readAgain() {
	ho.Checkpointed.Inbox, ho.Checkpointed.Signals = schemas.Position{}, schemas.Position{}
}
