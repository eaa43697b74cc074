package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/timers"
)

const (
	// stopTimeout bounds a planned stop: hand over partitions, finish what is on its way, close the store.
	stopTimeout = 15 * time.Second
	// readyTimeout bounds how long a server of its own waits for its partitions before it calls itself ready: a large
	// backlog is worked off behind the ready line.
	readyTimeout = 5 * time.Second
)

// The roles of a server. Each can run alone; all of them run by default.
const (
	roleBroker = "broker"
	roleTimers = "timers"
	roleOps    = "ops"
)

var allRoles = []string{roleBroker, roleTimers, roleOps}

// Reasons for the end of a server, as causes of its context.
var (
	errCutShort  = errors.New("the stop was cut short")
	errSlowStop  = fmt.Errorf("the roles did not stop within %v", stopTimeout)
	errRoleEnded = errors.New("the role ended by itself")
)

// serveOptions of serve. The zero value of a field is its default, except where it says required.
type serveOptions struct {
	// Namespace is served. Defaults to "default".
	Namespace string
	// Embedded configures the NATS server in this process. Not used with External.
	Embedded embedded.Options
	// External connects to a NATS server elsewhere instead. Defaults to none.
	External *post.Options
	// Roles of this process. Defaults to all.
	Roles []string
	// Partitions and Replicas as in topology.Options.
	Partitions, Replicas int
	// ClaimTTL is how long the claims of this process outlive it. Defaults to 10 s.
	ClaimTTL time.Duration
	// Node names this process. Defaults to the host name, with a number behind it while another live node has it.
	Node string
	// Logger is required.
	Logger logrus.FieldLogger
	// Ready is called once, when requests are answered. Defaults to nothing.
	Ready func(readiness)
	// Hurry cuts a stop short when it is closed. Defaults to never.
	Hurry <-chan struct{}
}

// readiness is what the ready line says.
type readiness struct {
	Ready      bool     `json:"ready"`
	URL        string   `json:"url"`
	Profile    string   `json:"profile"`
	Namespace  string   `json:"namespace"`
	Partitions int      `json:"partitions"`
	Node       string   `json:"node"`
	Roles      []string `json:"roles"`
	Store      string   `json:"store,omitempty"`
}

// serve runs a server until ctx is done and its roles have stopped. It returns nil after a clean stop, and the first
// failure otherwise: one of the start, or of a role that ended by itself.
func serve(ctx context.Context, o serveOptions) error {
	n := &node{o: o, log: o.Logger}
	defer n.close()
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while it started
		}
		return err
	}
	return n.run(ctx)
}

// runner is what every role is.
type runner interface {
	Run(ctx context.Context) error
}

// roles builds the roles of this process, in the order in which they start.
func (n *node) roles() (map[string]runner, error) {
	wanted := n.o.Roles
	if len(wanted) == 0 {
		wanted = allRoles
	}
	roles := map[string]runner{}
	for _, name := range wanted {
		var r runner
		var err error
		switch name {
		case roleBroker:
			n.broker, err = broker.New(n.dial, broker.Options{
				Namespace: string(n.space.Name), Partitions: n.space.Partitions, Claims: n.claims, Node: n.claims.Node(),
				Version: semanticVersion(), Logger: n.log,
			})
			r = n.broker
		case roleTimers:
			r = timers.New(n.conn, &timers.Options{
				Namespace: string(n.space.Name), Partitions: n.space.Partitions, Node: n.claims.Node(), Claims: n.claims, Logger: n.log,
			})
		case roleOps:
			r, err = n.master()
		default:
			err = fmt.Errorf("%w: there is no role %q: use some of %s", errUnknownRole, name, strings.Join(allRoles, ","))
		}
		if err != nil {
			return nil, err
		}
		roles[name] = r
	}
	return roles, nil
}

var errUnknownRole = errors.New("unknown role")

func (n *node) master() (runner, error) {
	return ops.NewMaster(ops.MasterOptions{
		Claims: n.claims, Logger: n.log,
		Fence: func(ctx context.Context, partition int, claim uint64) error {
			_, err := broker.Fence(ctx, n.conn, n.space.Name, partition, claim, n.claims.Node())
			if errors.Is(err, broker.ErrNewerFence) {
				return nil
			}
			return err
		},
	})
}

func (n *node) run(ctx context.Context) error {
	roles, err := n.roles()
	if err != nil {
		return err
	}
	return n.supervise(ctx, roles)
}

// supervise runs roles until ctx is done or one of them ends, then waits for the others.
func (n *node) supervise(ctx context.Context, roles map[string]runner) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for name, r := range roles {
		wg.Go(func() {
			if err := r.Run(work); err != nil && work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, err))
			} else if work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, errRoleEnded))
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()

	if n.awaitPartitions(work) && n.o.Ready != nil {
		n.o.Ready(n.readiness(roles))
	}
	<-work.Done()
	failure := context.Cause(work)
	if ctx.Err() != nil {
		failure = nil
		n.log.Info("stopping; a second signal cuts it short")
	}
	limit := time.NewTimer(stopTimeout)
	defer limit.Stop()
	select {
	case <-ended:
	case <-n.o.Hurry:
		failure = cmp.Or(failure, errCutShort)
	case <-limit.C:
		failure = cmp.Or(failure, errSlowStop)
	}
	return failure
}

// awaitPartitions waits, in a server that has all partitions to itself, until it owns them, so that the first request
// after the ready line finds an owner. It reports false if the server is to stop.
func (n *node) awaitPartitions(ctx context.Context) bool {
	if n.broker == nil || n.server == nil {
		return ctx.Err() == nil
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); len(n.broker.Owned()) < n.space.Partitions && time.Since(began) < readyTimeout; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

func (n *node) readiness(roles map[string]runner) readiness {
	r := readiness{
		Ready: true, Profile: "external", Namespace: string(n.space.Name), Partitions: n.space.Partitions, Node: n.claims.Node(),
	}
	for _, name := range allRoles {
		if roles[name] != nil {
			r.Roles = append(r.Roles, name)
		}
	}
	if n.server == nil {
		r.URL = n.conn.NATS().ConnectedUrlRedacted()
		return r
	}
	r.URL, r.Profile = n.server.ClientURL(), n.server.Profile().String()
	if !n.server.Memory() {
		r.Store = n.server.StoreDir()
	}
	return r
}

// String is the ready line for people.
func (r readiness) String() string {
	store := ""
	switch {
	case r.Store != "":
		store = ", store " + r.Store
	case r.Profile != "external":
		store = ", store in memory"
	}
	return fmt.Sprintf("drover is ready: namespace %s with %d partitions, node %s as %s, profile %s%s; connect with --nats %s",
		r.Namespace, r.Partitions, r.Node, strings.Join(r.Roles, "+"), r.Profile, store, r.URL)
}
