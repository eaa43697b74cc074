package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// A publisher may write a wildcard in the place of an id, as in drover.<ns>.signal.order-17.*: NATS takes that for a token like
// any other, stores the message and acknowledges it, but does not transform such a subject. So it stands in the signals stream
// without a partition, where no owner's filter finds it.
//
// The owner of partition 0 looks for these now and then, and moves them to the dead letters. It needs no position: what is in the
// stream under a subject that was not transformed has not been buried, or its purge was cut short, and a letter is written once.

// unroutableOwner is the partition whose owner looks for misfits. Each namespace has it.
const unroutableOwner = 0

func (p *partition) lookForUnroutable() {
	if p.n != unroutableOwner || time.Since(p.looked) < restEvery {
		return
	}
	p.looked = time.Now()
	readAsync(p.b, p.loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.buryUnroutable(ctx)
	}, func(_ struct{}, err error) {
		if err != nil {
			p.log.WithError(err).Debug("signals without a partition cannot be looked for; looking again in a while")
		}
	})
}

// buryUnroutable buries as many as there are, in their order, and removes each once its letter is stored.
func (p *partition) buryUnroutable(ctx context.Context) error {
	stream, filter := p.b.ns.StreamSignals(), p.b.ns.Unroutable()
	for next := uint64(1); p.lease.Valid(); {
		m, err := p.b.reads.NextBySubject(ctx, stream, filter, next)
		if errors.Is(err, natsconn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		at := schemas.At(m.Time)
		letter := schemas.DeadLetter{
			Reason: deadUndecodable, Subject: m.Subject, Time: at, Body: m.Data,
			Details: fmt.Sprintf("the subject %s has a wildcard in the place of an id: write * as %%2A and > as %%3E", m.Subject),
		}
		p.log.WithField("subject", letter.Subject).WithField("reason", letter.Reason).Warn("dead letter: " + letter.Details)
		tail := deadTail(p.n, signalLog)
		place := dead.Place{Partition: tail[0], Stream: tail[1], Incarnation: strconv.FormatInt(int64(at), 10), Sequence: m.Seq}
		if err := dead.Bury(ctx, p.b.reads, p.b.ns, place, letter); err != nil {
			return err
		}
		next = m.Seq + 1
		if err := p.b.reads.Purge(ctx, stream, filter, next); err != nil {
			return err
		}
	}
	return nil
}
