package main

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/internal/pause"
)

// refusedPause is how long the role flows waits when the NATS user may not do what it needs: rights can be changed while a server runs.
const refusedPause = 30 * time.Second

// flows is the role that runs deployed flows. A server whose user has not the rights for it goes on without: those rights are newer than
// some users.
func (t *tenant) flows() runner {
	return runnerFunc(func(ctx context.Context) error {
		for {
			w := deployed.New(t.conn, &deployed.Options{Namespace: string(t.space.Name), Identity: t.claims.Node(), Logger: t.log})
			err := w.Run(ctx)
			refused, ok := errors.AsType[*post.RefusedError](err)
			if !ok || ctx.Err() != nil {
				return err
			}
			t.log.WithError(err).Errorf("flows are not run here: %s; trying again in %v", refused.Hint(), refusedPause)
			if pause.For(ctx, refusedPause) != nil {
				return nil
			}
		}
	})
}

// deciders is the worker of deployed flows of a process that is no server.
func (f *workerFlags) deciders(c *drover.Client, a *app, identity string) (*deployed.Worker, error) {
	log, err := a.logger()
	if err != nil {
		return nil, err
	}
	return deployed.New(c.Conn(), &deployed.Options{
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
