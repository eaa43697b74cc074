package env

import (
	"context"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// WatchServerQuota follows how full the NATS server is as a whole, until ctx ends. Its limit stands
// in no answer of JetStream's API, and after it nobody can renew a claim, fence or purge: what
// begins has to stop before.
func (e *Env) WatchServerQuota(ctx context.Context) {
	if e.Options.Quota == nil {
		return
	}
	for {
		now := &Quota{}
		now.Bytes, now.Limit = e.Options.Quota()
		was := e.ServerQuota.Swap(now)
		if full := now.Full(); full != (was != nil && was.Full()) {
			e.Options.Logger.WithField("bytes", now.Bytes).WithField("limit", now.Limit).
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
func (r *Quota) lookAgain() time.Duration {
	if r.Limit <= 0 {
		return QuotaEvery
	}
	return diskspace.FillTime(r.Limit/100*quotaFull-r.Bytes, quotaSoon, QuotaEvery)
}

func (e *Env) ServerFull() bool {
	r := e.ServerQuota.Load()
	return r != nil && r.Full()
}

// ServerRefusal is the refusal of what would fill the server.
func (r *Quota) ServerRefusal() *schemas.Error {
	return schemas.Errorf(schemas.CodeLimit, "the NATS server is full: all that is there has %d "+
		"of %d bytes", r.Bytes, r.Limit).WithHint("%s", natsconn.ServerRoomHint)
}
