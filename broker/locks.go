package broker

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

func (b *Broker) serveLocks(r micro.Request) {
	var q schemas.LocksRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	if q.Lock != "" || q.Scope != "" {
		if err := schemas.ValidateLock(q.Lock, q.Scope); err != nil {
			b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("lock"))
			return
		}
	}
	b.scan(r, func(ctx context.Context) (any, error) { return b.listLocks(ctx, &q) })
}

// listLocks answers from what is seen of the bucket; about a single lock the leader of the bucket
// is asked.
func (b *Broker) listLocks(
	ctx context.Context, q *schemas.LocksRequest,
) (*schemas.LocksResponse, error) {
	a := &schemas.LocksResponse{V: schemas.Version, Locks: []schemas.LockRecord{}}
	if q.Lock != "" {
		got, err := b.ReadLock(ctx, schemas.LockKey(q.Scope, q.Lock))
		if err != nil {
			return nil, schemas.Errorf(schemas.CodeUnavailable, "the lock cannot be read now: %v",
				err).InField("lock").WithHint("try again")
		}
		if got.Record != nil {
			a.Locks = append(a.Locks, *got.Record)
		}
		return a, nil
	}
	limit, quota, last := runs.Limit(q.Limit), b.BodyLimit()/2, ""
	for key, l := range b.Locks.All(q.Cursor) {
		if quota -= 2 * l.Size; len(a.Locks) == limit || quota < 0 && len(a.Locks) > 0 {
			a.Cursor = last
			break
		}
		a.Locks, last = append(a.Locks, *l.Record), key
	}
	return a, nil
}
