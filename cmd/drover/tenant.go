package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/timers"
)

const (
	// releaseTimeout bounds giving the node's name back.
	releaseTimeout = time.Second
	// nodeNames is how many names are tried for a node that was given none.
	nodeNames = 64
)

// Reasons for the end of a tenant.
var (
	errRoleEnded   = errors.New("the role ended by itself")
	errUnknownRole = errors.New("unknown role")
	errDropped     = errors.New("the namespace is not to be served any more")
)

// tenant is a namespace that a node serves: the roles and what they share.
type tenant struct {
	node *node
	log  logrus.FieldLogger
	conn *post.Conn // of all roles but the broker

	space  *topology.Namespace
	claims *claims.Claims
	name   *claims.Lease // of the node's name; nil if the name was given
	broker *broker.Broker
	roles  map[string]runner

	seen    *topology.Info // as the watch first saw it, and only for the watch once the tenant runs
	drop    func()         // ends run; may be called more than once
	built   chan struct{}  // closed when there are roles to run
	dropped chan struct{}  // closed by drop
	ended   chan struct{}  // closed when nothing of it runs any more
}

func newTenant(n *node, log logrus.FieldLogger, conn *post.Conn) *tenant {
	t := &tenant{
		node: n, log: log, conn: conn,
		built: make(chan struct{}), dropped: make(chan struct{}), ended: make(chan struct{}),
	}
	t.drop = sync.OnceFunc(func() { close(t.dropped) })
	return t
}

// open makes the namespace, or what is missing of it, and gives the node its name there.
func (t *tenant) open(ctx context.Context, o topology.Options) error {
	o.Version, o.Logger = versionName(), t.log
	var err error
	if t.space, err = topology.Ensure(ctx, t.conn, o); err != nil {
		return err
	}
	return t.openClaims(ctx)
}

// openClaims gives the node its name and its claims. A name that was given is taken as it is: a server that is started
// again after a crash must not wait until the claims of its former self have run out. Another node may have the name in
// one namespace and not in the next, so a node can have a different one in each.
func (t *tenant) openClaims(ctx context.Context) error {
	n := t.node
	o := claims.Options{Node: n.o.Node, TTL: n.o.ClaimTTL, Logger: t.log}
	if n.server != nil {
		o.StoreID, o.Boot = n.server.StoreID(), n.server.Boot()
	}
	var err error
	if o.Node != "" {
		t.claims, err = claims.Open(t.conn, t.space.Name.BucketClaims(), o)
		return err
	}
	host, err := os.Hostname()
	if err != nil || subject.ValidateID("host name", host) != nil {
		host = "node"
	}
	for i := range nodeNames {
		o.Node = host
		if i > 0 {
			o.Node = fmt.Sprintf("%s-%d", host, i+1)
		}
		if free, err := t.takeName(ctx, o); free || err != nil {
			return err
		}
	}
	return fmt.Errorf("%d nodes named %s-… are alive: name this one with --node", nodeNames, host)
}

// takeName holds o.Node as this node's name for as long as it lives, unless a live node has it: one that holds the name
// too, or one that was given it and holds any claim.
func (t *tenant) takeName(ctx context.Context, o claims.Options) (free bool, err error) {
	c, err := claims.Open(t.conn, t.space.Name.BucketClaims(), o)
	if err != nil {
		return false, err
	}
	held, err := c.List(ctx)
	if err != nil {
		return false, err
	}
	for _, h := range held {
		if h.Node == o.Node && !h.Expired && (o.StoreID == "" || h.StoreID != o.StoreID) {
			return false, nil
		}
	}
	lease, err := c.TryAcquire(ctx, "node."+keyForm.ReplaceAllString(o.Node, "_"))
	if errors.Is(err, claims.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t.claims, t.name = c, lease
	return true, nil
}

// keyForm matches what a key of a bucket may not hold.
var keyForm = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// build makes the roles.
func (t *tenant) build() error {
	t.roles = map[string]runner{}
	for _, name := range t.node.roleNames() {
		var r runner
		var err error
		switch name {
		case roleBroker:
			t.broker, err = broker.New(t.node.dial, broker.Options{
				Namespace: string(t.space.Name), Partitions: t.space.Partitions, Claims: t.claims, Node: t.claims.Node(),
				RequireTypes: t.space.RequireTypes, Version: semanticVersion(), Logger: t.log,
				Synced: t.node.server != nil && t.node.server.Profile() == embedded.ProfileSingle,
			})
			r = t.broker
		case roleTimers:
			r = timers.New(t.conn, &timers.Options{
				Namespace: string(t.space.Name), Partitions: t.space.Partitions, Node: t.claims.Node(), Claims: t.claims, Logger: t.log,
			})
		case roleOps:
			r, err = t.master()
		default:
			err = fmt.Errorf("%w: there is no role %q: use some of %s", errUnknownRole, name, strings.Join(allRoles, ","))
		}
		if err != nil {
			return err
		}
		t.roles[name] = r
	}
	return nil
}

func (t *tenant) master() (runner, error) {
	return ops.NewMaster(ops.MasterOptions{
		Claims: t.claims, Logger: t.log,
		Fence: func(ctx context.Context, partition int, claim uint64) error {
			_, err := broker.Fence(ctx, t.conn, t.space.Name, partition, claim, t.claims.Node())
			if errors.Is(err, broker.ErrNewerFence) {
				return nil
			}
			return err
		},
	})
}

// run runs the roles until ctx is done, the tenant is dropped, or one of them ends, and waits for the others. It returns an
// error only in the last case.
func (t *tenant) run(ctx context.Context) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for name, r := range t.roles {
		wg.Go(func() {
			if err := r.Run(work); err != nil && work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, err))
			} else if work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, errRoleEnded))
			}
		})
	}
	select {
	case <-t.dropped:
		stop(errDropped)
	case <-work.Done():
	}
	wg.Wait()
	if cause := context.Cause(work); ctx.Err() == nil && !errors.Is(cause, errDropped) {
		return cause
	}
	return nil
}

// stay runs the home of a node: if its namespace is deleted the node lives on for the others.
func (t *tenant) stay(ctx context.Context) error {
	err := t.run(ctx)
	t.close()
	close(t.ended)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// awaitPartitions waits, in a server that has all partitions to itself, until it owns them, so that the first request
// after the ready line finds an owner. It reports false if ctx ended.
func (t *tenant) awaitPartitions(ctx context.Context) bool {
	if t.broker == nil || t.node.server == nil {
		return ctx.Err() == nil
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); len(t.broker.Owned()) < t.space.Partitions && time.Since(began) < readyTimeout; {
		select {
		case <-tick.C:
		case <-t.ended:
			return true
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// serves tells whether this is the namespace that is served: not a later one of the same name, nor one that demands
// something else of its types.
func (t *tenant) serves(i *topology.Info) bool {
	if t.seen == nil {
		t.seen = i // the home's
	}
	return t.seen.Created.Equal(i.Created) && t.seen.RequireTypes == i.RequireTypes
}

// leaving tells whether the tenant was dropped, over whether nothing of it runs any more.
func (t *tenant) leaving() bool { return closed(t.dropped) }
func (t *tenant) over() bool    { return closed(t.ended) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// close gives the node's name back.
func (t *tenant) close() {
	if t.name == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	if err := t.name.Release(ctx); err != nil {
		t.log.WithError(err).Debug("the node's name is not given back, it will expire")
	}
	t.name = nil
}
