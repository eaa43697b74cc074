package main

import (
	"context"
	"errors"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/decider/flow/store"
)

// deciders is the worker of deployed flows of a process that is no server.
func (f *workerFlags) deciders(c *drover.Client, a *app, identity string) (*deployed.Worker, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	return deployed.New(c, &deployed.Options{
		Namespace: c.Namespace(), Identity: identity, DrainTimeout: f.drain.value, Logger: log,
	}), nil
}

// runAll runs workers until ctx is done or one of them has ended, which an operator may have wanted, and lets the others end.
func runAll(ctx context.Context, runs ...func(context.Context) error) error {
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

// deployedFlow refuses a start of a flow that is not deployed, and fixes its version. It needs the right to read the bucket of flows.
func deployedFlow(ctx context.Context, c *drover.Client, name string, o *drover.StartOptions) error {
	_, version, err := flowStore(c).Get(ctx, store.Flow, name, o.TypeVersion)
	if err != nil {
		return flowError("start "+word(name, 100), err)
	}
	o.TypeVersion = version
	return nil
}
