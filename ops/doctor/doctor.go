// Package doctor looks at a NATS server and a namespace of Drover, and says what is well, what is
// not, and what to change.
//
// Invariants:
//
//   - It changes nothing. To find out whether a user may ask something it asks with an empty body,
//     which every verb refuses before it does anything.
//   - What the user may not see is a warning that says so, and how it could be seen; it never
//     counts as well.
//   - Each check looks at what can be had by a few requests, however large the namespace is. What
//     needs every run to be looked at is the audit's.
//
// The command line calls [Examine].
package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nodes"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/schemas"
)

// Status is how a check ended.
type Status string

// The statuses, from best to worst.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Bad  Status = "bad"
)

// Finding is one line of the report.
type Finding struct {
	Status Status `json:"status"`
	Check  string `json:"check"`
	Found  string `json:"found"`
	// Change says what to do about it; "" when nothing is.
	Change string `json:"change,omitempty"`
}

// The checks.
const (
	checkServer      = "server"
	checkAccount     = "account"
	checkPayload     = "max payload"
	checkPermissions = "permissions"
	checkNodes       = "nodes"
	checkProfile     = "profile"
	checkSync        = "sync"
	checkClock       = "clock"
	checkDisk        = "disk"
	checkStreams     = "streams"
	checkReplicas    = "replicas"
	checkOwners      = "owners"
	checkBacklog     = "backlog"
	checkLists       = "task lists"
	checkDead        = "dead letters"
)

// oneCheck bounds what one check asks.
const oneCheck = 5 * time.Second

// Options of [Examine]. Client is required.
type Options struct {
	// Client is connected to the namespace.
	Client *drover.Client
	// System is a connection as a user of the system account of NATS, who may see how servers
	// elsewhere sync. Defaults to none.
	System *natsconn.Conn
}

// examination is one call of Examine.
type examination struct {
	o        Options
	conn     *natsconn.Conn
	ns       subject.Namespace
	findings []Finding

	nodes     []nodes.Info // heard of lately or not
	now       time.Time    // by the server's clock; zero if unknown
	registry  *nodes.Registry
	inspected *topology.Inspection // nil if it cannot be seen
	owned     int                  // partitions that somebody holds
	consumers int                  // that the account allows each stream; 0 or less for any number
}

// Examine runs all checks and returns what each has found. It returns early, with the findings so
// far, if the server has no JetStream to speak of; an error says that ctx ended.
func Examine(ctx context.Context, o Options) ([]Finding, error) {
	e := &examination{
		o: o, conn: natsconn.Of(o.Client), ns: subject.Namespace(o.Client.Namespace()),
	}
	for _, check := range []func(context.Context) (goOn bool){
		e.server, e.account, e.clock, e.register, e.sync, e.streams, e.owners, e.lists,
		e.permissions,
	} {
		one, cancel := context.WithTimeout(ctx, oneCheck)
		goOn := check(one)
		cancel()
		if ctx.Err() != nil {
			return e.findings, fmt.Errorf("doctor: %w", context.Cause(ctx))
		}
		if !goOn {
			break
		}
	}
	return e.findings, nil
}

// Worst is the worst status of the findings.
func Worst(findings []Finding) Status {
	worst := OK
	for _, f := range findings {
		if f.Status == Bad || f.Status == Warn && worst == OK {
			worst = f.Status
		}
	}
	return worst
}

func (e *examination) add(found ...Finding) { e.findings = append(e.findings, found...) }

// unseen is the finding for what could not be looked at.
func unseen(check string, err error) Finding {
	if refused, ok := errors.AsType[*natsconn.RefusedError](err); ok {
		return Finding{
			Warn, check, fmt.Sprintf("cannot be seen with this user: %v", refused),
			refused.Hint() + "; see \"drover auth template operator\"",
		}
	}
	return Finding{
		Warn, check, fmt.Sprintf("cannot be seen: %v", err),
		"try again, or look at the logs of the servers",
	}
}

func (e *examination) server(ctx context.Context) bool {
	nc := e.conn.NATS()
	err := topology.CheckServer(ctx, e.conn)
	e.add(judgeServer(nc.ConnectedServerVersion(), nc.ConnectedServerName(), err),
		judgePayload(e.conn.MaxPayload()))
	return err == nil || errors.Is(err, natsconn.ErrPermission)
}

// cause is the refusal that cut a call of the client library short, if one did.
func cause(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*natsconn.RefusedError](context.Cause(ctx)); ok {
		return refused
	}
	return err
}

// clock compares this machine with the server, by the middle of a round trip.
func (e *examination) clock(ctx context.Context) bool {
	ctx, stop := e.conn.UntilRefused(ctx, "$JS.API.")
	defer stop()
	asked := time.Now()
	s, err := e.conn.JetStream().Stream(ctx, "KV_"+subject.BucketNodes)
	trip := time.Since(asked)
	if err != nil {
		e.add(unseen(checkClock, cause(ctx, err)))
		return true
	}
	ahead := asked.Add(trip / 2).Sub(s.CachedInfo().TimeStamp)
	e.now = s.CachedInfo().TimeStamp
	e.add(judgeSkew("this machine", ahead, trip/2))
	return true
}

// register looks at the nodes.
func (e *examination) register(ctx context.Context) bool {
	var err error
	if e.registry, err = nodes.Open(e.conn, nodes.Options{}); err == nil {
		e.nodes, err = e.registry.List(ctx)
	}
	if err != nil && !errors.Is(err, natsconn.ErrNoStream) {
		e.add(unseen(checkNodes, err))
		return true
	}
	e.add(judgeNodes(e.nodes, string(e.ns), e.alive)...)
	for i := range e.nodes {
		if n := &e.nodes[i]; !n.Malformed && e.alive(n) {
			e.add(judgeNode(n)...)
		}
	}
	return true
}

func (e *examination) alive(n *nodes.Info) bool { return e.registry.Alive(n, e.now) }

func (e *examination) streams(ctx context.Context) bool {
	i, err := topology.Inspect(ctx, e.conn, e.ns)
	switch {
	case errors.Is(err, topology.ErrNoNamespace):
		left, err := topology.Remains(ctx, e.conn, e.ns)
		e.add(judgeMissing(e.ns, left, err))
		return false
	case errors.Is(err, topology.ErrConflict):
		e.add(Finding{Status: Bad, Check: checkStreams, Found: err.Error()})
		return false
	case err != nil:
		e.add(unseen(checkStreams, err))
		return true
	}
	e.inspected = i
	e.add(judgeConsumers(e.consumers, i.Partitions)...)
	e.add(judgeLeaders(i)...)
	e.add(judgeStreams(i)...)
	e.add(judgeReplicas(i, e.servers(), e.conn.NATS().ConnectedClusterName() != ""))
	e.add(judgeBacklog(i, e.ns), judgeDead(i, e.ns))
	return true
}

// servers is how many NATS servers are known of: those that the connection was told of, or that
// nodes bring along.
func (e *examination) servers() int {
	of := map[string]bool{}
	for _, n := range e.nodes {
		if n.Server != "" {
			of[n.Server] = true
		}
	}
	return max(len(of), len(e.conn.NATS().Servers()), 1)
}

func (e *examination) owners(ctx context.Context) bool {
	ctx, stop := e.conn.UntilRefused(ctx, "$JS.API.")
	defer stop()
	c, err := claims.Open(e.conn, e.ns.BucketClaims(), claims.Options{Node: "doctor"})
	var held []claims.Info
	if err == nil {
		held, err = c.List(ctx)
	}
	if e.inspected != nil && errors.Is(err, natsconn.ErrNoStream) {
		e.add(Finding{
			Bad, checkOwners,
			"nobody can have a partition: the bucket " + e.ns.BucketClaims() + " is missing",
			"see the check streams",
		})
		return true
	}
	if err != nil {
		e.add(unseen(checkOwners, cause(ctx, err)))
		return true
	}
	partitions := partitionsUnknown
	if e.inspected != nil {
		partitions = e.inspected.Partitions
	}
	e.owned = partitionsOwned(held)
	e.add(judgeOwners(held, partitions))
	return true
}

func (e *examination) lists(ctx context.Context) bool {
	began := time.Now()
	lists, err := e.o.Client.TaskLists(ctx)
	if refusal, ok := errors.AsType[*schemas.Error](err); ok && refusal.Final {
		// a server answers, and says what keeps it from its work
		e.answered()
		e.add(Finding{Bad, checkLists, refusal.Message, refusal.Hint})
		return true
	}
	if errors.Is(err, drover.ErrUnavailable) || errors.Is(err, drover.ErrTimeout) {
		e.add(judgeSilence(err, e.owned, time.Since(began)))
		return true
	}
	if err != nil {
		e.add(unseen(checkLists, err))
		return true
	}
	e.add(judgeLists(lists, schemas.At(time.Now())))
	return true
}
