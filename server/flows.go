package server

import (
	"context"
	"errors"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/decider/flow/deployed"
	"github.com/droverhq/drover/internal/sleep"
)

// refusedPause is how long the role flows waits when the NATS user may not do what it needs: rights
// can be changed while a server runs.
const refusedPause = 30 * time.Second

// flows is the role that runs deployed flows. A server whose user has not the rights for it goes on
// without: those rights are newer than some users.
func (t *tenant) flows() runner {
	return runnerFunc(func(ctx context.Context) error {
		for {
			w := deployed.New(t.conn, &deployed.Options{
				Namespace: string(t.space.Name), Identity: t.claims.Node(), Logger: t.log,
			})
			err := w.Run(ctx)
			refused, ok := errors.AsType[*natsconn.RefusedError](err)
			if !ok || ctx.Err() != nil {
				return err
			}
			t.log.WithError(err).Errorf("flows are not run here: %s; trying again in %v",
				refused.Hint(), refusedPause)
			if sleep.For(ctx, refusedPause) != nil {
				return nil
			}
		}
	})
}
