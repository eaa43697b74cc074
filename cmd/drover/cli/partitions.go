package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// PartitionsOf looks up how many partitions the client's namespace has.
func PartitionsOf(ctx context.Context, c *drover.Client, op string) (int, error) {
	space, err := topology.Lookup(ctx, natsconn.Of(c), subject.Namespace(c.Namespace()))
	if errors.Is(err, topology.ErrNoNamespace) {
		return 0, &drover.Error{
			Op: op, Code: schemas.CodeNotFound,
			Err: fmt.Errorf("there is no namespace %q", c.Namespace()), Hint: HintNoNamespace,
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", op, err)
	}
	return space.Partitions, nil
}
