package broker

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/schemas"
)

// checkQuota asks how full the history is, and its account, once in a while.
func (p *partition) checkQuota() {
	every := quotaRarely
	if p.quota.limit > 0 {
		every = quotaEvery
	}
	if p.quota.busy || time.Since(p.quota.looked) < every {
		return
	}
	p.quota.busy, p.quota.looked = true, time.Now()
	writeAsync(p.b, p.loop, func(ctx context.Context) (quota, error) {
		return p.b.readQuota(ctx, p.b.ns.StreamHistory(p.n))
	}, func(now quota, err error) {
		p.quota.busy = false
		if err != nil {
			p.log.WithError(err).Debug("the size of the history cannot be read now")
			return
		}
		was := p.quota.full()
		p.quota.account, p.quota.limit, p.quota.bytes = now.account, now.limit, now.bytes
		if full := p.quota.full(); full != was {
			p.log.WithField("bytes", p.quota.bytes).
				WithField("limit", p.quota.limit).
				WithField("account", p.quota.account).
				WithField("full", full).
				Warn("the room for new workflows has changed")
		}
	})
}

// refusal is the refusal of what would fill the history.
func (p *partition) refusal() *schemas.Error {
	switch {
	case p.b.serverFull():
		return p.b.serverQuota.Load().serverRefusal()
	case p.quota.account:
		return p.quota.noAccount()
	}
	return schemas.Errorf(schemas.CodeLimit, "the histories of namespace %q are full: partition "+
		"%d has %d of %d bytes", p.b.o.Namespace, p.n, p.quota.bytes, p.quota.limit).
		InField("maxBytes").
		WithHint("%s", natsconn.RoomHint(nil, p.b.o.Namespace))
}

// full tells whether the partition takes no new runs and no signals.
func (p *partition) full() bool { return p.quota.full() || p.b.serverFull() }

// fullWith is full beside so many bytes more.
func (p *partition) fullWith(bytes int) bool {
	now := p.quota
	now.promised += int64(bytes)
	return now.full() || p.b.serverFull()
}
