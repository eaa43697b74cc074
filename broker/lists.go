package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

func (b *Broker) serveLists(r micro.Request) {
	var q schemas.TaskListsRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	b.scan(r, func(ctx context.Context) (any, error) { return b.lists(ctx) })
}

// lists reads how each task list stands off its stream and its consumers: one request for all
// streams, and one more for each. A list that is deleted meanwhile is left out.
func (b *Broker) lists(ctx context.Context) (*schemas.TaskListsResponse, error) {
	a := &schemas.TaskListsResponse{V: schemas.Version, Lists: []schemas.TaskListInfo{}}
	prefix := b.NS.StreamTasks("")
	streams := b.Reads.JetStream().ListStreams(ctx,
		jetstream.WithStreamListSubject(b.NS.AllTasks("*")))
	for s := range streams.Info() {
		list, ok := strings.CutPrefix(s.Config.Name, prefix)
		if !ok {
			continue // somebody's own stream on our subjects
		}
		i := schemas.TaskListInfo{List: list}
		if s.State.Msgs > 0 {
			i.OldestAt = schemas.At(s.State.FirstTime)
		}
		a.Lists = append(a.Lists, i)
	}
	if err := streams.Err(); err != nil {
		return nil, env.Unavailable(fmt.Errorf("list the task lists: %w", err))
	}
	here := a.Lists[:0]
	for _, i := range a.Lists {
		exists, err := b.WorkersOf(ctx, &i)
		if err != nil {
			return nil, env.Unavailable(fmt.Errorf("list %s: %w", i.List, err))
		}
		if exists {
			here = append(here, i)
		}
		if len(i.Missing) > 0 {
			b.LookAtList(i.List, 0)
		}
	}
	a.Lists = here
	slices.SortFunc(a.Lists,
		func(x, y schemas.TaskListInfo) int { return strings.Compare(x.List, y.List) })
	return a, nil
}

func (b *Broker) serveTaskList(r micro.Request) {
	var q schemas.TaskListRequest
	if err := env.DecodeRequest(r, &q); err != nil {
		b.refuse(r, env.Invalid(err))
		return
	}
	if err := schemas.ValidateName("list", q.List); err != nil {
		b.refuse(r, schemas.Errorf(schemas.CodeInvalid, "%v", err).InField("list"))
		return
	}
	b.background(r, func(ctx context.Context) (any, error) {
		if err := b.EnsureList(ctx, q.List); err != nil {
			return nil, schemas.Errorf(schemas.CodeUnavailable, "%v", err).InField("list")
		}
		return &schemas.TaskListResponse{
			V:         schemas.Version,
			Stream:    b.NS.StreamTasks(q.List),
			Consumer:  topology.Consumer,
			Consumers: subject.Consumers(),
		}, nil
	})
}
