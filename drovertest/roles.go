package drovertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/server/wiring"
)

const (
	node = "drovertest"
	// claimTTL spares virtual days a million renewals. A restart waits for none of it, since claims
	// of an earlier start of the same store are taken over at once.
	claimTTL = time.Hour
	// lookEvery spares them as many looks for other nodes, of which there are none.
	lookEvery = time.Minute
	// checkpointEvery is for virtual time, as claimTTL is. It costs a new owner a longer read.
	checkpointEvery = 10 * time.Second
	ownLimit        = 30 * time.Second
)

// roles are the broker, the timer worker and the health master of one node.
type roles struct {
	conn   *natsconn.Conn
	dialed sync.Mutex
	conns  []*natsconn.Conn // of the broker
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// rolesOptions of startRoles; all are required.
type rolesOptions struct {
	ns           subject.Namespace
	partitions   int
	server       *embedded.Server
	serverSwitch *serverSwitch
	virtual      bool
	log          logrus.FieldLogger
	t            testing.TB
}

// startRoles returns when the broker owns all partitions.
func startRoles(ctx context.Context, o rolesOptions) (*roles, error) {
	r := &roles{}
	dial := func(ctx context.Context, name string) (*natsconn.Conn, error) {
		c, err := natsconn.Dial(ctx, natsconn.Options{InProcess: o.serverSwitch, Name: name})
		if err == nil {
			r.dialed.Lock()
			defer r.dialed.Unlock()
			r.conns = append(r.conns, c)
		}
		return c, err
	}
	var err error
	if r.conn, err = dial(ctx, node); err != nil {
		return nil, err
	}
	own, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.stop = stop
	b, err := r.start(own, dial, o)
	if err != nil {
		r.shutdown()
		return nil, err
	}
	tick, limit := time.NewTicker(time.Millisecond), time.NewTimer(ownLimit)
	defer tick.Stop()
	defer limit.Stop()
	for len(b.Owned()) < o.partitions {
		select {
		case <-tick.C:
		case <-limit.C:
			r.shutdown()
			return nil, fmt.Errorf(
				"the broker owns partitions %v after %v, want %d of them: see the log",
				b.Owned(), ownLimit, o.partitions)
		}
	}
	return r, nil
}

func (r *roles) start(
	ctx context.Context, dial func(context.Context, string) (*natsconn.Conn, error), o rolesOptions,
) (*broker.Broker, error) {
	log := o.log.WithField("node", node)
	co := claims.Options{
		Node: node, StoreID: o.server.StoreID(), Boot: o.server.Boot(), Logger: log,
	}
	var bo broker.Options
	if o.virtual {
		co.TTL, co.LookEvery, bo.CheckpointEvery = claimTTL, lookEvery, checkpointEvery
	}
	held, err := claims.Open(r.conn, o.ns.BucketClaims(), co)
	if err != nil {
		return nil, err
	}
	roles := &wiring.Wiring{
		Conn: r.conn, Dial: dial, Namespace: o.ns, Partitions: o.partitions, Claims: held,
		Logger: log,
	}
	b, err := roles.Broker(bo)
	if err != nil {
		return nil, err
	}
	master, err := roles.Master(ops.MasterOptions{})
	if err != nil {
		return nil, err
	}
	fire := roles.Timers()
	for name, run := range map[string]func(context.Context) error{
		"broker": b.Run, "timers": fire.Run, "master": master.Run,
	} {
		r.ended.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil &&
				!errors.Is(err, context.Canceled) {
				o.t.Errorf("drovertest: role %s: %v", name, err)
			}
		})
	}
	return b, nil
}

// shutdown ends the roles in good order: they hand over what they hold.
func (r *roles) shutdown() {
	r.stop()
	r.ended.Wait()
	r.hangUp()
}

// kill ends them after the server is gone: nothing that they have not said yet is ever heard.
func (r *roles) kill() {
	r.stop()
	r.hangUp()
	r.ended.Wait()
}

func (r *roles) hangUp() {
	r.dialed.Lock()
	defer r.dialed.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
}
