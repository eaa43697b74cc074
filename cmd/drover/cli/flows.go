package cli

import (
	"context"
	"errors"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/schemas"
)

// FlowStore is where the flows of the client's namespace are kept.
func FlowStore(c *drover.Client) *store.Store {
	return store.Open(natsconn.Of(c), subject.Namespace(c.Namespace()))
}

// FlowError says which command was refused, and what to do.
func FlowError(op string, err error) error {
	if e, ok := errors.AsType[*schemas.Error](err); ok {
		return &drover.Error{Op: op, Code: e.Code, Hint: e.Hint, Err: e}
	}
	return err
}

// flowNames completes names of flows.
func flowNames(ctx context.Context, c *drover.Client, _ string, yield func(name, about string)) {
	all, err := FlowStore(c).List(ctx)
	if err != nil {
		return
	}
	for _, e := range all {
		if e.Err == nil {
			yield(e.Name, about(e.Description))
		}
	}
}
