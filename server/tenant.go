package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/stats"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/ops"
	"github.com/droverhq/drover/ops/alwayson"
	"github.com/droverhq/drover/ops/audit"
	"github.com/droverhq/drover/ops/bulk"
	"github.com/droverhq/drover/ops/metrics"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/recycle"
	"github.com/droverhq/drover/ops/retention"
	"github.com/droverhq/drover/ops/schedules"
	"github.com/droverhq/drover/ops/visibility"
	"github.com/droverhq/drover/ops/windows"
	"github.com/droverhq/drover/server/wiring"
)

// Reasons for the end of a tenant.
var (
	errRoleEnded   = errors.New("the role ended by itself")
	errUnknownRole = errors.New("unknown role")
	errDropped     = errors.New("the namespace is not to be served any more")
)

// tenant is a namespace that a node serves: the roles and what they share.
type tenant struct {
	node       *node
	generation *generation
	log        logrus.FieldLogger
	conn       *natsconn.Conn // of all roles but the broker

	space   *topology.Namespace
	claims  *claims.Claims
	keeper  *ops.Master       // competes with role ops only; the home's also recovers
	windows *windows.Windows  // run by every node with role ops
	index   *visibility.Index // nil without role ops
	bulk    *bulk.Bulk        // as the windows
	broker  *broker.Broker
	metrics *metrics.Namespace // nil without Options.Metrics
	roles   map[string]runner
	unlist  func() // takes the namespace off the node's record

	seen    *topology.Info // as the watch first saw it, and only for the watch once the tenant runs
	drop    func()         // ends run; may be called more than once
	built   chan struct{}  // closed when there are roles to run
	dropped chan struct{}  // closed by drop
	ended   chan struct{}  // closed when nothing of it runs any more
	// whether the home has ended by an error, and the node is about to; not for use before ended
	failed bool
}

func newTenant(n *node, log logrus.FieldLogger, conn *natsconn.Conn) *tenant {
	t := &tenant{
		node: n, generation: n.generation.Load(), log: log, conn: conn,
		built: make(chan struct{}), dropped: make(chan struct{}), ended: make(chan struct{}),
	}
	t.drop = sync.OnceFunc(func() { close(t.dropped) })
	return t
}

// open makes the namespace, or what is missing of it, and opens its claims.
func (t *tenant) open(ctx context.Context, o topology.Options) error {
	o.Version, o.Logger = t.node.o.Version, t.log
	var err error
	if t.space, err = topology.Ensure(ctx, t.conn, o); err != nil {
		return err
	}
	if note := t.expendable(); note != nil {
		for p := range t.space.Partitions {
			if err := note(t.space.Name.StreamAlarms(p)); err != nil {
				return err
			}
		}
	}
	return t.openClaims(ctx)
}

// openClaims opens the claims under the node's name, which the home finds.
func (t *tenant) openClaims(ctx context.Context) (err error) {
	n := t.node
	if n.member == nil {
		if err := n.join(ctx, t.space.Name); err != nil {
			return err
		}
	}
	o := claims.Options{Node: n.member.Name(), TTL: n.o.ClaimTTL, Logger: t.log}
	if n.server != nil {
		o.StoreID, o.Boot = n.server.StoreID(), n.server.Boot()
	}
	t.claims, err = claims.Open(t.conn, t.space.Name.BucketClaims(), o)
	return err
}

// build makes the roles.
func (t *tenant) build() error {
	t.roles = map[string]runner{}
	t.metrics = t.node.metrics.Namespace(string(t.space.Name))
	system, err := t.retention()
	if err != nil {
		return err
	}
	t.windows, err = windows.New(windows.Options{
		Conn: t.conn, Namespace: t.space.Name, Node: t.claims.Node(), Logger: t.log,
	})
	if err != nil {
		return err
	}
	janitor, err := t.janitor()
	if err != nil {
		return err
	}
	t.bulk, err = bulk.New(bulk.Options{
		Conn: t.conn, Namespace: t.space.Name, Node: t.claims.Node(), Logger: t.log,
		RequireTypes: t.space.RequireTypes,
		Note:         operations.New(t.conn, t.space.Name, t.claims.Node(), t.log).Note,
	})
	if err != nil {
		return err
	}
	if t.keeper, err = t.master(janitor); err != nil {
		return err
	}
	t.metrics.Roles(t.space.Partitions, t.claims, t.keeper.Leads)
	if t.node.has(RoleOps) {
		if t.index, err = t.visibility(); err != nil {
			return err
		}
		t.metrics.Index(func() metrics.IndexStats {
			of := t.index.Stats()
			return metrics.IndexStats{Rows: of.Rows, Bytes: of.Bytes, Whole: of.Building >= 1}
		})
	}
	for _, name := range t.node.o.Roles {
		var r runner
		var err error
		switch name {
		case RoleBroker:
			t.broker, err = t.wiring().Broker(broker.Options{
				RequireTypes: t.space.RequireTypes, Version: t.node.o.semanticVersion(),
				Synced: t.node.synced() && !t.space.Relaxed, Predecessors: t.node.predecessors(),
				Quorum: t.node.quorum(), Quota: t.node.room(), Stage: t.node.stage(),
				Expendable: t.expendable(), Changed: t.changed(janitor),
				DrainTimeout: t.node.o.DrainTimeout,
				Execution:    execution.Config{MaxEvents: t.node.o.MaxEvents, Retention: system},
			})
			r = t.broker
		case RoleTimers:
			r = t.wiring().Timers()
		case RoleOps:
			r = runnerGroup{t.keeper, t.windows, t.index, t.bulk}
		case RoleFlows:
			r = t.flows()
		default:
			err = fmt.Errorf("%w: there is no role %q: use some of %s",
				errUnknownRole, name, strings.Join(allRoles, ","))
		}
		if err != nil {
			return err
		}
		t.roles[name] = r
	}
	t.generation.serve(t.broker, t.space.Name == t.node.home.space.Name)
	t.unlist = t.node.served.add(string(t.space.Name))
	return nil
}

func (t *tenant) wiring() *wiring.Wiring {
	return &wiring.Wiring{
		Conn: t.conn, Dial: t.generation.dial, Namespace: t.space.Name,
		Partitions: t.space.Partitions, Claims: t.claims, Stats: t.metrics.Stats(), Logger: t.log,
	}
}

func (t *tenant) master(janitor *retention.Janitor) (*ops.Master, error) {
	lost, err := ops.NewReverter(
		ops.ReverterOptions{Conn: t.conn, Namespace: t.space.Name, Logger: t.log})
	if err != nil {
		return nil, err
	}
	o := ops.MasterOptions{Revert: lost.Revert}
	if n := t.node; t.space.Name == n.home.space.Name { // also when it is served anew
		// One master looks after the nodes, whatever namespaces they serve.
		o.Nodes, o.Self, o.Home = n.register, n.member, string(t.space.Name)
	}
	var auditor *audit.Auditor
	auditor, err = audit.New(audit.Options{
		Observer: func(r *audit.Report) { t.metrics.Audited(r, auditor.Standing()) },
		Conn:     t.conn, Namespace: t.space.Name, Partitions: t.space.Partitions, Claims: t.claims,
		Identity: t.claims.Node(),
		Rate:     auditRate, Logger: t.log,
	})
	if err != nil {
		return nil, err
	}
	noted := operations.New(t.conn, t.space.Name, t.claims.Node(), t.log)
	always, err := alwayson.New(alwayson.Options{
		Conn: t.conn, Namespace: t.space.Name, RequireTypes: t.space.RequireTypes, Logger: t.log,
		Note: noted.Note,
	})
	if err != nil {
		return nil, err
	}
	recycles := recycle.NewKeeper(recycle.KeeperOptions{
		Conn: t.conn, Namespace: t.space.Name, Node: t.claims.Node(), Nodes: t.node.register,
		Logger: t.log,
	})
	scheduler, err := schedules.New(schedules.Options{
		Conn: t.conn, Namespace: t.space.Name, RequireTypes: t.space.RequireTypes,
		Node: t.claims.Node(), Logger: t.log,
	})
	if err != nil {
		return nil, err
	}
	o.Tasks = append(o.Tasks, auditor.Run, noted.Run, scheduler.Run, always.Run, recycles.Run,
		janitorAfter(scheduler, janitor))
	if t.metrics != nil {
		client, err := drover.Connect(context.Background(), &drover.Options{
			Conn: t.conn.NATS(), Namespace: string(t.space.Name), Logger: logx.Or(nil),
		})
		if err != nil {
			return nil, err
		}
		from := metrics.Source{Client: client, Nodes: o.Nodes, Log: t.log}
		o.Tasks = append(o.Tasks,
			func(ctx context.Context) error { return t.metrics.Lead(ctx, from) })
	}
	return t.wiring().Master(o)
}

// janitorAfter begins to purge when it is settled what an earlier master was starting: a run that
// was purged could be started again.
func janitorAfter(
	scheduler *schedules.Scheduler, janitor *retention.Janitor,
) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-scheduler.Settled():
			return janitor.Run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// auditRate is how many runs a second the master looks at: a full pass over many must leave the
// machine to the work.
const auditRate = 200

// run runs the roles until ctx is done, the tenant is dropped, or one of them ends, and waits for
// the others. It returns an error only in the last case.
//
// The role flows ends after the broker. A broker that leaves waits for decisions that are being
// made, and a task that is on its way to deciders that no longer listen is answered by nobody:
// partitions would have no owner until its timeout.
func (t *tenant) run(ctx context.Context) error {
	defer t.unlist()
	work, stop := context.WithCancelCause(stats.With(ctx, t.metrics.Stats()))
	defer stop(nil)
	deciding, decided := work, func() {}
	if t.roles[RoleBroker] != nil {
		deciding, decided = context.WithCancel(context.WithoutCancel(ctx))
		defer decided()
	}
	var wg sync.WaitGroup
	for name, r := range t.roles {
		during := work
		if name == RoleFlows {
			during = deciding
		}
		wg.Go(func() {
			if name == RoleBroker {
				defer decided()
			}
			if err := r.Run(during); err != nil && work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, err))
			} else if work.Err() == nil {
				stop(fmt.Errorf("role %s: %w", name, errRoleEnded))
			}
		})
	}
	select {
	case <-t.dropped:
		stop(errDropped)
		t.node.metrics.Drop(string(t.space.Name))
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
	t.failed = err != nil
	close(t.ended)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// awaitBroker waits until its broker listens for requests: one that cannot begin, as under a limit
// of the NATS server, ends before. In a server that has all partitions to itself and is no node of
// a cluster it waits until it owns them, so that the first request after the ready line finds an
// owner. It reports false if ctx ended, or the tenant failed.
func (t *tenant) awaitBroker(ctx context.Context) bool {
	if t.broker == nil {
		return ctx.Err() == nil
	}
	limit := time.NewTimer(readyTimeout)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for begun := t.broker.Started(); ; {
		select {
		case <-begun:
			if begun = nil; t.node.server == nil || t.node.clustered() {
				return ctx.Err() == nil
			}
		case <-tick.C:
			if begun == nil && len(t.broker.Owned()) >= t.space.Partitions {
				return ctx.Err() == nil
			}
		case <-limit.C:
			return ctx.Err() == nil
		case <-t.ended:
			return !t.failed && ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
}

// serves tells whether this is the namespace that is served: not a later one of the same name, nor
// one that demands something else of its types or keeps its closed runs otherwise.
func (t *tenant) serves(i *topology.Info) bool {
	if t.seen == nil {
		t.seen = i // the home's
	}
	return t.seen.Created.Equal(i.Created) && t.seen.RequireTypes == i.RequireTypes &&
		t.seen.FlowRetention == i.FlowRetention && t.seen.Retention == i.Retention
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
