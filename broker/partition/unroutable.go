package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
	"github.com/droverhq/drover/schemas"
)

// lookForUnroutable has signals buried that stand in no partition.
func (p *Partition) lookForUnroutable() {
	if !p.intake.Unroutable.Due(p.Partition, time.Now()) {
		return
	}
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, intake.BuryUnroutable(ctx, p.Env.Reads, p.Env.NS, p.lease.Valid,
			dead.ReasonUndecodable, func(l *schemas.DeadLetter) {
				p.Log.WithField("subject", l.Subject).WithField("reason", l.Reason).
					Warn("dead letter: " + l.Details)
			})
	}, func(_ struct{}, err error) {
		if err != nil {
			p.Log.WithError(err).
				Debug("signals without a partition cannot be looked for; looking again in a while")
		}
	})
}
