package broker

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/schemas"
	"github.com/droverhq/drover/schemas/ops"
)

func (b *Broker) serveList(r micro.Request) {
	var q schemas.ListRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	b.scan(r, func(ctx context.Context) (any, error) { return b.Histories.List(ctx, &q) })
}

func (b *Broker) serveCount(r micro.Request) {
	var q schemas.CountRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	b.scan(r, func(ctx context.Context) (any, error) { return b.Histories.Count(ctx, &q) })
}

func (b *Broker) serveSpans(r micro.Request) {
	var q ops.SpansRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	if err := schemas.ValidateID("workflowId", q.WorkflowID); err != nil {
		b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("workflowId"))
		return
	}
	b.scan(r, func(ctx context.Context) (any, error) {
		a, err := b.Histories.Spans(ctx, &q)
		if errors.Is(err, runs.ErrNoRun) {
			return nil, env.NotFound(q.WorkflowID, q.Run)
		}
		return a, err
	})
}

// scan is [Broker.background] for a request that reads all of something.
func (b *Broker) scan(r micro.Request, serve func(context.Context) (any, error)) {
	b.Scans.Enter(askerOf(r.Reply()), func(done func()) {
		if b.Background.Err() != nil { // the broker stops: whoever waits asks another
			done()
			return
		}
		b.background(r, func(ctx context.Context) (any, error) {
			defer done()
			return serve(ctx)
		})
	}, func() { b.refuse(r, runs.TooMany()) })
}

// askerOf tells askers apart by their reply subjects: the last token is the request's.
func askerOf(reply string) string {
	if i := strings.LastIndexByte(reply, '.'); i > 0 {
		return reply[:i]
	}
	return reply
}
