package broker

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/dead"
	"github.com/droverhq/drover/broker/partition"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
)

// serveDead lists or counts dead letters.
func (b *Broker) serveDead(r micro.Request) {
	var q schemas.DeadRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	letters := &dead.Reader{Conn: b.Reads, Namespace: b.NS, Reasons: partition.DeadReasons}
	b.scan(r, func(ctx context.Context) (any, error) {
		if q.Count {
			return letters.Count(ctx, &q)
		}
		return letters.List(ctx, &q, runs.Limit(q.Limit), b.BodyLimit()/2)
	})
}
