// Package wiring makes the roles that move the runs of one namespace: broker, timers and health
// master. It stands below package server, which also serves flows, so that tests of flows can use
// it. It starts nothing: whoever makes a role runs it.
package wiring

import (
	"context"
	"errors"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/timers"
)

// Wiring makes the roles that move the runs of one namespace: broker, timers and master. A server
// makes its own by it. Tests make them by it one by one, to stop and to kill each for itself. All
// fields but Stats and Logger are required.
type Wiring struct {
	// Conn is that of timers and master.
	Conn *natsconn.Conn
	// Dial makes the connections of a broker.
	Dial func(ctx context.Context, name string) (*natsconn.Conn, error)
	// Namespace and Partitions are those of a namespace that exists.
	Namespace  subject.Namespace
	Partitions int
	// Claims are those of the node that the roles belong to.
	Claims *claims.Claims
	// Stats counts what broker and timers do. Defaults to none.
	Stats *stats.Stats
	// Logger receives what the roles say. Defaults to none.
	Logger logrus.FieldLogger
}

// Broker makes a broker. What the wiring knows is filled in.
func (w *Wiring) Broker(o broker.Options) (*broker.Broker, error) {
	o.Namespace, o.Partitions, o.Claims, o.Node, o.Logger = string(w.Namespace), w.Partitions,
		w.Claims, w.Claims.Node(), w.Logger
	o.Stats = w.Stats
	return broker.New(w.Dial, o)
}

// Timers makes a timer worker.
func (w *Wiring) Timers() *timers.Worker {
	return timers.New(w.Conn, &timers.Options{
		Namespace: string(w.Namespace), Partitions: w.Partitions, Claims: w.Claims,
		Node: w.Claims.Node(), Stats: w.Stats, Logger: w.Logger,
	})
}

// Master makes the health master, which fences the partitions of those that have died.
func (w *Wiring) Master(o ops.MasterOptions) (*ops.Master, error) {
	o.Claims, o.Logger = w.Claims, w.Logger
	o.Fence = func(ctx context.Context, n int, claim uint64) error {
		_, err := handover.Fence(ctx, w.Conn, w.Namespace, n, claim, w.Claims.Node())
		if errors.Is(err, env.ErrNewerFence) {
			return nil
		}
		return err
	}
	return ops.NewMaster(o)
}
