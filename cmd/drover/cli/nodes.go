package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/schemas"
)

// OpenNodes lists the records of the nodes.
func OpenNodes(ctx context.Context, c *drover.Client) (*nodes.Registry, []nodes.Info, error) {
	register, err := nodes.Open(natsconn.Of(c), nodes.Options{})
	if err != nil {
		return nil, nil, err
	}
	list, err := register.List(ctx)
	if errors.Is(err, natsconn.ErrNoStream) {
		return nil, nil, &drover.Error{
			Op: "nodes", Code: schemas.CodeNotFound,
			Err: fmt.Errorf("there is no bucket %s", subject.BucketNodes),
			Hint: "check --nats, the account, and the JetStream domain of the context; a server " +
				"makes the bucket when it starts",
		}
	}
	return register, list, err
}
