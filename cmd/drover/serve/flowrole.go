package serve

import (
	"context"
	"errors"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/cmd/drover/cli"
	"github.com/droverhq/drover/decider/flow/deployed"
)

// deciders is the worker of deployed flows of a process that is no server.
func (f *WorkerFlags) deciders(
	c *drover.Client, a *cli.App, identity string,
) (*deployed.Worker, error) {
	log, err := a.Logger()
	if err != nil {
		return nil, err
	}
	return deployed.New(c, &deployed.Options{
		Namespace: c.Namespace(), Identity: identity, DrainTimeout: f.Drain.Value, Logger: log,
	}), nil
}

// RunAll runs workers until ctx is done or one of them has ended, which an operator may have
// wanted, and lets the others end.
func RunAll(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	var all error
	for range runs {
		all = errors.Join(all, <-ended)
		cancel()
	}
	return all
}
