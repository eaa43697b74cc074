package broker

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/types"
	"github.com/droverhq/drover/schemas"
)

// beginTypes reads the registered types and follows them until the broker ends.
func (b *env) beginTypes(ctx context.Context) (*types.Table, error) {
	t, follow, err := types.Open(ctx, types.Options{
		Conn: b.conn, Reads: b.reads, Bucket: b.ns.BucketTypes(), Require: b.o.RequireTypes,
		Log: b.o.Logger, Now: b.now, BodyLimit: b.bodyLimit, Publish: b.setTypes,
	})
	if err != nil {
		return nil, err
	}
	b.wg.Go(func() { follow(b.ctx) })
	return t, nil
}

// refuseType says why a workflow of the request's type may not be started, or nil.
func (b *env) refuseType(q *schemas.StartRequest) *schemas.Error {
	return b.types.Refusal(b.config().Types, q)
}

// serveType answers a request about types, which is checked first.
func serveType[Request any, Q interface {
	*Request
	Validate() *schemas.Error
}](b *Broker, r micro.Request, serve func(*types.Table, context.Context, Q) (any, error)) {
	q := Q(new(Request))
	if err := requested(r, q); err != nil {
		b.refuse(r, invalid(err))
		return
	}
	if err := q.Validate(); err != nil {
		b.refuse(r, err)
		return
	}
	answer := b.background
	if _, all := any(q).(*schemas.TypeListRequest); all {
		answer = b.scan
	}
	answer(r, func(ctx context.Context) (any, error) { return serve(b.types, ctx, q) })
}
