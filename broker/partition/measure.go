package partition

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/stats"
)

// measureEvery is how often an owner looks how far it is after the end of its inbox: that costs a
// request.
const measureEvery = 15 * time.Second

// standing is how the partition stands, for those who measure.
type standing struct {
	*stats.Partition
	measured time.Time // when the lag was last looked at
}

// counted notes that the partition is owned, after a take-over that took so long, until disown is
// called.
func (p *Partition) counted(took time.Duration) (disown func()) {
	why := stats.TakenLost
	switch {
	case p.handover.Before == 0:
		why = stats.TakenNew
	case p.handover.Orderly:
		why = stats.TakenHanded
	}
	p.Env.Options.Stats.Took(why, took)
	p.standing.Partition, disown = p.Env.Options.Stats.Own(p.Partition)
	return disown
}

// measure notes how the partition stands.
func (p *Partition) measure() {
	if p.Env.Options.Stats == nil {
		return
	}
	done := p.intake.Effects.Position().Sequence
	p.standing.Behind.Store(int64(max(p.writer.Last(), done) - done))
	if time.Since(p.standing.measured) < measureEvery {
		return
	}
	p.standing.measured = time.Now()
	stream := p.Env.NS.StreamIn(p.Partition)
	env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (uint64, error) {
		return p.Env.Reads.StreamLastSeq(ctx, stream)
	}, func(last uint64, err error) {
		read := p.intake.Logs[inboxLog].At()
		if err != nil || last <= read {
			p.standing.InboxLag.Store(0)
			p.standing.InboxSince.Store(0)
			return
		}
		p.standing.InboxLag.Store(int64(last - read))
		env.ReadAsync(p.Env, p.Loop, func(ctx context.Context) (time.Time, error) {
			m, err := p.Env.Reads.GetSeq(ctx, stream, read+1)
			if err != nil {
				return time.Time{}, err
			}
			return m.Time, nil
		}, func(at time.Time, err error) {
			if errors.Is(err, natsconn.ErrNotFound) || p.intake.Logs[inboxLog].At() > read {
				p.standing.InboxSince.Store(0) // it was read meanwhile
			} else if err == nil {
				p.standing.InboxSince.Store(at.UnixNano())
			}
		})
	})
}
