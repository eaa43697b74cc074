package partition

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/schemas"
)

// checkQuota asks how full the history is, and its account, once in a while.
func (p *Partition) checkQuota() {
	every := env.QuotaRarely
	if p.quota.Limit > 0 {
		every = env.QuotaEvery
	}
	if p.quota.Busy || time.Since(p.quota.Looked) < every {
		return
	}
	p.quota.Busy, p.quota.Looked = true, time.Now()
	env.WriteAsync(p.b, p.loop, func(ctx context.Context) (env.Quota, error) {
		return p.b.ReadQuota(ctx, p.b.NS.StreamHistory(p.n))
	}, func(now env.Quota, err error) {
		p.quota.Busy = false
		if err != nil {
			p.log.WithError(err).Debug("the size of the history cannot be read now")
			return
		}
		was := p.quota.Full()
		p.quota.Account, p.quota.Limit, p.quota.Bytes = now.Account, now.Limit, now.Bytes
		if full := p.quota.Full(); full != was {
			p.log.WithField("bytes", p.quota.Bytes).WithField("limit", p.quota.Limit).
				WithField("account", p.quota.Account).WithField("full", full).
				Warn("the room for new workflows has changed")
		}
	})
}

// refusal is the refusal of what would fill the history.
func (p *Partition) refusal() *schemas.Error {
	switch {
	case p.b.ServerFull():
		return p.b.ServerQuota.Load().ServerRefusal()
	case p.quota.Account:
		return p.quota.NoAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the histories of namespace %q are full: partition "+
		"%d has %d of %d bytes", p.b.Options.Namespace, p.n, p.quota.Bytes, p.quota.Limit).
		InField("maxBytes").WithHint("%s", natsconn.RoomHint(nil, p.b.Options.Namespace))
}

// full tells whether the partition takes no new runs and no signals.
func (p *Partition) full() bool { return p.quota.Full() || p.b.ServerFull() }

// fullWith is full beside so many bytes more.
func (p *Partition) fullWith(bytes int) bool {
	now := p.quota
	now.Promised += int64(bytes)
	return now.Full() || p.b.ServerFull()
}
