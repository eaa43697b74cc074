package partition

import (
	"context"
	"fmt"
	"time"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/intake"
)

// tick writes the checkpoint and tidies the logs.
func (p *Partition) tick() {
	p.Loop.After(p.Env.Options.CheckpointEvery, p.tick)
	if p.leaving != nil || !p.canWrite() {
		return
	}
	p.measure()
	p.deadlines.Usage.Tick()
	if p.handover.Checkpointing {
		return
	}
	unwanted := time.Duration(p.unwanted+1) * p.Env.Options.CheckpointEvery
	if p.unwanted++; p.Env.Share.Mine(p.Partition) {
		p.unwanted = 0
	} else if unwanted > 2*p.Env.Options.Claims.LookEvery() {
		p.Log.Info("handing the partition over: another broker is preferred")
		p.leave(ErrElsewhere)
		return
	}
	if id := p.Env.Conn.NATS().ConnectedServerId(); id != "" && id != p.handover.Server &&
		!p.handover.Replicated && !p.Env.Options.Synced {
		p.Log.Info("the NATS server is another one: taking over anew, to see what it has")
		p.stop(fmt.Errorf("%w: the server has changed", ErrRefused))
		return
	}
	p.writer.CheckQuota()
	p.lookForUnroutable()
	p.ageRepeats()
	next := p.handover.Positions()
	if next == p.handover.Checkpointed {
		p.tidy()
		return
	}
	p.handover.Checkpointing = true
	env.WriteAsync(p.Env, p.Loop, func(ctx context.Context) (uint64, error) {
		return p.handover.Write(ctx, next)
	}, func(rev uint64, err error) {
		if p.sealed() {
			return
		}
		p.handover.Checkpointing = false
		if err != nil {
			// Whoever wrote it is the owner now; if it was our own lost acknowledgement, taking
			// over again is cheap.
			p.fail("write the checkpoint: %w", err)
			return
		}
		p.handover.Checkpointed, p.handover.CheckpointRev = next, rev
		p.tidy()
	})
}

// tidy purges both logs up to the checkpoint. The message at the checkpoint stays: it is the
// witness of the stream's incarnation (P-9). A log of a new incarnation is left alone until its
// checkpoint belongs to it.
func (p *Partition) tidy() {
	if p.intake.Purging {
		return
	}
	rest := intake.RestEvery
	if p.writer.Limited() {
		rest = min(rest, env.QuotaEvery) // few large messages fill a limited log too
	}
	for number, log := range p.intake.Logs {
		keep := p.positionOf(number)
		if !log.ToPurge(keep, time.Now(), rest) {
			continue
		}
		p.intake.Purging = true
		env.WriteAsync(p.Env, p.Loop, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, p.Env.Conn.Purge(ctx, log.Stream, log.Filter, keep.Sequence)
		}, func(_ struct{}, err error) {
			p.intake.Purging = false
			if err != nil {
				p.Log.WithError(err).WithField("stream", log.Stream).
					Warn("consumed messages cannot be purged")
				return
			}
			log.Purged(keep.Sequence)
		})
		return
	}
}
