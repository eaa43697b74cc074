package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// A publisher may write a wildcard in the place of an id, as in drover.<ns>.signal.order-17.*: NATS
// takes that for a token like any other, stores the message and acknowledges it, but does not
// transform such a subject. So it stands in the signals stream without a partition, where no
// owner's filter finds it.
//
// The owner of partition 0 looks for these now and then, and moves them to the dead letters. It
// needs no position: what is in the stream under a subject that was not transformed has not been
// buried, or its purge was cut short, and a letter is written once.

// unroutableOwner is the partition whose owner looks for them. Each namespace has it.
const unroutableOwner = 0

// Unroutable is the search for signals without a partition. The zero value is ready to use.
type Unroutable struct{ looked time.Time }

// Due tells whether the owner of a partition is to look now.
func (u *Unroutable) Due(partition int, now time.Time) bool {
	if partition != unroutableOwner || now.Sub(u.looked) < RestEvery {
		return false
	}
	u.looked = now
	return true
}

// BuryUnroutable buries as many as there are, in their order, and removes each once its letter is
// stored. It ends when the claim is not valid any more. bury is told of each letter before that.
func BuryUnroutable(
	ctx context.Context, conn *natsconn.Conn, ns subject.Namespace, valid func() bool,
	reason string, bury func(*schemas.DeadLetter),
) error {
	stream, filter := ns.StreamSignals(), ns.Unroutable()
	for next := uint64(1); valid(); {
		m, err := conn.NextBySubject(ctx, stream, filter, next)
		if errors.Is(err, natsconn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := schemas.At(m.Time)
		letter := schemas.DeadLetter{Reason: reason, Subject: m.Subject, Time: at, Body: m.Data}
		letter.Details = fmt.Sprintf("the subject %s has a wildcard in the place of an id: "+
			"write * as %%2A and > as %%3E", m.Subject)
		bury(&letter)
		if err := dead.Bury(ctx, conn, ns, PlaceIn(unroutableOwner, Signals, m.Seq, at), letter); err != nil {
			return err
		}
		next = m.Seq + 1
		if err := conn.Purge(ctx, stream, filter, next); err != nil {
			return err
		}
	}
	return nil
}
