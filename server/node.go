package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/namespaces"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/ops/metrics"
)

// node is a server at work: what its namespaces share. Its home is the namespace that it makes by
// itself, and whose failure is its own; the others come and go while it runs.
type node struct {
	o   Options
	log logrus.FieldLogger

	register *nodes.Registry
	member   *nodes.Member // this node's record; nil until its name is known
	served   namesServed
	stop     context.CancelCauseFunc // begins a planned stop
	// limit of that stop by the word of an operator, in ns; 0 without one
	drain   atomic.Int64
	halted  atomic.Bool    // the roles wait for the word of an operator
	acked   chan struct{}  // closed by ack
	ack     func()         // may be called more than once
	telling sync.WaitGroup // of what makes the stop known
	failed  bool           // it did not end properly
	// called once, when requests are answered; not for use before run
	ready   func()
	serving atomic.Bool  // ready was called
	metrics *metrics.Set // nil without Options.Metrics

	server *embedded.Server // nil with External
	conn   *natsconn.Conn   // to look after the namespaces; of no role
	// of the first generation; later ones serve the home as they do other namespaces
	home       *tenant
	generation atomic.Pointer[generation]
	since      atomic.Int64  // when that began, by the NATS server's clock, in ns since the epoch
	turns      chan *turn    // recycles that the roles are to make
	ended      chan struct{} // closed when the roles have ended for good
}

// newNode prepares a node. Its planned stop ends the returned context.
func newNode(ctx context.Context, o Options) (*node, context.Context) {
	o = o.withDefaults()
	n := &node{
		o: o, log: o.Logger, acked: make(chan struct{}), turns: make(chan *turn),
		ended: make(chan struct{}),
	}
	if o.Metrics != nil {
		store := o.Embedded.StoreDir
		if o.External != nil {
			store = ""
		}
		n.metrics = metrics.New(o.Version, store)
	}
	n.ack = sync.OnceFunc(func() { close(n.acked) })
	ctx, n.stop = context.WithCancelCause(ctx)
	return n, ctx
}

func (n *node) open(ctx context.Context) error {
	o := n.o.home()
	if n.o.External == nil {
		at := n.o.Embedded
		at.Logger = n.log
		server, err := embedded.Start(ctx, at)
		if err != nil {
			return err
		}
		n.server = server
	}
	var err error
	if n.conn, err = n.dial(ctx, "drover server"); err != nil {
		return err
	}
	n.generation.Store(newGeneration(n))
	conn, err := n.generation.Load().dial(ctx, "drover server "+o.Namespace)
	if err != nil {
		return err
	}
	n.home = newTenant(n, n.log, conn)
	o.Memory, o.Synced = n.memory(), n.single()
	if n.server == nil {
		// Nobody has said how to store it, so it stays as it is.
		if have, err := topology.Lookup(ctx, n.conn, subject.Namespace(o.Namespace)); err == nil {
			o.Memory = have.Memory
		}
	}
	return n.openHome(ctx, o)
}

// makeHome makes the home or finds it. A deletion of it that was cut short is completed before, on
// a NATS server of its own: that ends with this process, and a cluster with those that refuse to
// start, so nobody else could. Other nodes may do the same.
func (n *node) makeHome(ctx context.Context, o topology.Options) error {
	err := n.home.open(ctx, o)
	if n.server == nil || !errors.Is(err, topology.ErrDeleting) {
		return err
	}
	n.log.WithError(err).
		Warn("the deletion of the home was cut short; completing it, then the home is made anew")
	err = topology.Delete(ctx, n.conn, subject.Namespace(o.Namespace),
		topology.DeleteOptions{Logger: n.log})
	if err != nil && !errors.Is(err, topology.ErrNoNamespace) &&
		!errors.Is(err, topology.ErrConflict) {
		return err
	}
	return n.home.open(ctx, o)
}

// memory tells whether this node makes streams in memory.
func (n *node) memory() bool { return n.server != nil && n.server.Memory() }

// replicas are those of a namespace that is made through this node, if nobody says otherwise.
func (n *node) replicas() int {
	if n.clustered() {
		return cmp.Or(n.o.Replicas, clusterReplicas)
	}
	return n.o.Replicas
}

func (n *node) dial(ctx context.Context, name string) (*natsconn.Conn, error) {
	var o natsconn.Options
	if n.server != nil {
		o.InProcess = n.server.Conn()
	} else {
		o = *n.o.External
	}
	o.Name, o.Logger = name, n.log
	return natsconn.Dial(ctx, o)
}

// run works until ctx is done or something fails.
func (n *node) run(ctx context.Context) error {
	if err := n.home.build(); err != nil {
		return err
	}
	told, err := n.listen()
	if err != nil {
		return err
	}
	defer told.Close()
	if !n.begin(ctx) {
		return nil // told to stop before the roles began
	}
	close(n.home.built)
	recycles, err := n.recycles()
	if err != nil {
		return err
	}
	parts := map[string]runner{"roles": runnerFunc(n.runGenerations), "recycles": recycles}
	if n.has(RoleOps) && !n.o.OnlyNamespace {
		parts["namespace service"] = runnerFunc(n.serveNamespaces)
	}
	if n.keeps() {
		parts["store"] = runnerFunc(n.watchStore)
	}
	err = n.supervise(ctx, parts)
	if n.failed = err != nil; !n.failed && errors.Is(context.Cause(ctx), ErrRecycled) {
		return ErrRecycled
	}
	return err
}

// serveNamespaces answers those who make and delete namespaces. It has a connection of its own,
// which ends with it.
func (n *node) serveNamespaces(ctx context.Context) error {
	conn, err := n.dial(ctx, n.member.Name()+" namespaces")
	if err != nil {
		return err
	}
	defer conn.Close()
	return namespaces.Serve(ctx, conn, namespaces.ServeOptions{
		Memory: n.memory(), Replicas: n.replicas(), Synced: n.single(), Node: n.member.Name(),
		Version: n.o.semanticVersion(), Logger: n.log,
	})
}

func (n *node) has(role string) bool { return slices.Contains(n.o.Roles, role) }

// close ends what open began, the server last.
func (n *node) close() {
	n.stop(nil)
	n.leave()
	if l := n.generation.Load(); l != nil {
		l.sever()
	}
	if n.conn != nil {
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
	}
}
