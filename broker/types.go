package broker

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/types"
	"github.com/droverhq/drover/schemas"
)

// serveType answers a request about types, which is checked first.
func serveType[Request any, Q interface {
	*Request
	Validate() *schemas.Error
}](b *Broker, r micro.Request, serve func(*types.Table, context.Context, Q) (any, error)) {
	q := Q(new(Request))
	if err := env.DecodeRequest(r, q); err != nil {
		b.refuse(r, env.Invalid(err))
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
	answer(r, func(ctx context.Context) (any, error) { return serve(b.Types, ctx, q) })
}
