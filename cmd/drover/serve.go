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

	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/internal/lean"
)

const (
	// defaultDrain bounds a planned stop: hand over partitions, finish what runs (S2-1).
	defaultDrain = 5 * time.Minute
	// failureTimeout bounds the stop of the other roles when one has failed.
	failureTimeout = 15 * time.Second
	// readyTimeout bounds how long a server of its own waits for its partitions before it calls itself ready: a large
	// backlog is worked off behind the ready line.
	readyTimeout = 5 * time.Second
)

// The roles of a server. Each can run alone; all of them run by default.
const (
	roleBroker = "broker"
	roleTimers = "timers"
	roleOps    = "ops"
	roleFlows  = "flows"
)

var allRoles = []string{roleBroker, roleTimers, roleOps, roleFlows}

// Reasons for the end of a server, as causes of its context.
var (
	errCutShort = errors.New("the stop was cut short")
	errSlowStop = errors.New("the roles did not stop in time")
)

// serveOptions of serve. The zero value of a field is its default, except where it says required.
type serveOptions struct {
	// Namespace is the home of the node: made if it is missing. Defaults to "default".
	Namespace string
	// OnlyNamespace keeps the node from serving any other namespace, and from making and deleting some for clients. It
	// then needs no right to anything outside its own.
	OnlyNamespace bool
	// Embedded configures the NATS server in this process. Not used with External.
	Embedded embedded.Options
	// External connects to a NATS server elsewhere instead. Defaults to none.
	External *post.Options
	// Roles of this process. Defaults to all.
	Roles []string
	// Partitions and Replicas as in topology.Options.
	Partitions, Replicas int
	// MaxBytes as in topology.Options, of the home alone.
	MaxBytes int64
	// MaxEvents as in execution.Config.
	MaxEvents int64
	// ClaimTTL is how long the claims of this process outlive it. Defaults to 10 s.
	ClaimTTL time.Duration
	// Node names this process. Defaults to the host name, with a number behind it while another live node has it.
	Node string
	// AfterCrash is "recover" or "halt": what to do when an earlier self of this node did not end properly. Defaults to
	// "recover".
	AfterCrash string
	// DrainTimeout bounds a planned stop. Defaults to 5 min.
	DrainTimeout time.Duration
	// RecycleExit ends the process in its turn of a recycle, instead of restarting its roles in it.
	RecycleExit bool
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
	// Of a node of a cluster alone: its name, that of this server in it, how many nodes it has when it is whole, and how many
	// of them hold each stream.
	Cluster  string `json:"cluster,omitempty"`
	Server   string `json:"server,omitempty"`
	Size     int    `json:"clusterSize,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

// serve runs a server until ctx is done and its roles have stopped. It returns nil after a clean stop, and the first
// failure otherwise: one of the start, or of a role that ended by itself.
func serve(ctx context.Context, o serveOptions) error {
	lean.Ballast()
	n, ctx := newNode(ctx, o)
	widen(n.log)
	defer n.close()
	if err := n.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while it started
		}
		return n.explainDisk(err)
	}
	return n.run(ctx)
}

// runner is what every role is.
type runner interface {
	Run(ctx context.Context) error
}

// runnerFunc is a function as a runner.
type runnerFunc func(ctx context.Context) error

func (f runnerFunc) Run(ctx context.Context) error { return f(ctx) }

// supervise runs the parts of a node until ctx is done or one of them ends, then waits for the others.
func (n *node) supervise(ctx context.Context, parts map[string]runner) error {
	work, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	for name, r := range parts {
		wg.Go(func() {
			if err := r.Run(work); err != nil && work.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, err))
			} else if work.Err() == nil {
				stop(fmt.Errorf("%s: %w", name, errRoleEnded))
			}
		})
	}
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()

	<-work.Done()
	failure, most := context.Cause(work), min(failureTimeout, n.drainLimit())
	if ctx.Err() != nil {
		failure, most = nil, n.drainLimit()
		n.draining(ctx)
	}
	if n.unwritable() {
		most = min(most, brokenStop)
	}
	limit := time.NewTimer(most)
	defer limit.Stop()
	select {
	case <-ended:
	case <-n.o.Hurry:
		failure = cmp.Or(failure, errCutShort)
	case <-limit.C:
		failure = cmp.Or(failure, fmt.Errorf("%w: %v", errSlowStop, most))
	}
	return failure
}

func (n *node) readiness() readiness {
	r := readiness{
		Ready: true, Profile: "external", Namespace: string(n.home.space.Name), Partitions: n.home.space.Partitions, Node: n.member.Name(),
	}
	r.Roles = n.orderedRoles()
	if n.server == nil {
		r.URL = n.conn.URL()
		return r
	}
	r.URL, r.Profile = n.server.ClientURL(), n.server.Profile().String()
	if !n.server.Memory() {
		r.Store = n.server.StoreDir()
	}
	if n.clustered() {
		r.Cluster, r.Server, r.Replicas = n.server.ClusterName(), n.server.ServerName(), n.home.space.Replicas
		_, r.Size = n.server.Seen()
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
	if r.Cluster != "" {
		store = fmt.Sprintf(" (server %s of %s, %s, %s)%s", r.Server, r.Cluster, counted(r.Size, "node", "nodes"), counted(r.Replicas, "replica", "replicas"), store)
	}
	return fmt.Sprintf("drover is ready: namespace %s with %s, node %s as %s, profile %s%s; connect with --nats %s",
		r.Namespace, counted(r.Partitions, "partition", "partitions"), r.Node, strings.Join(r.Roles, "+"), r.Profile, store, r.URL)
}
