package broker

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// watchServerQuota follows how full the NATS server is as a whole, until ctx ends. Its limit stands
// in no answer of JetStream's API, and after it nobody can renew a claim, fence or purge: what
// begins has to stop before.
func (b *env) watchServerQuota(ctx context.Context) {
	if b.o.Quota == nil {
		return
	}
	for {
		now := &quota{}
		now.bytes, now.limit = b.o.Quota()
		was := b.serverQuota.Swap(now)
		if full := now.full(); full != (was != nil && was.full()) {
			b.o.Logger.WithField("bytes", now.bytes).
				WithField("limit", now.limit).
				WithField("full", full).
				Warn("the room of the NATS server for new workflows has changed")
		}
		if sleep.For(ctx, now.lookAgain()) != nil {
			return
		}
	}
}

// lookAgain is how long what is stored takes to come to where the server is full, at a rate that
// few disks have.
func (r *quota) lookAgain() time.Duration {
	if r.limit <= 0 {
		return quotaEvery
	}
	return diskspace.FillTime(r.limit/100*quotaFull-r.bytes, quotaSoon, quotaEvery)
}

func (b *env) serverFull() bool {
	r := b.serverQuota.Load()
	return r != nil && r.full()
}

// serverRefusal is the refusal of what would fill the server.
func (r *quota) serverRefusal() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the NATS server is full: all that is there has %d "+
		"of %d bytes", r.bytes, r.limit).
		WithHint("%s", natsconn.ServerRoomHint)
}
