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
	errCutShort = errors.New("the stop was cut short")
	errSlowStop = fmt.Errorf("the roles did not stop within %v", stopTimeout)
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

func (n *node) readiness() readiness {
	r := readiness{
		Ready: true, Profile: "external", Namespace: string(n.home.space.Name), Partitions: n.home.space.Partitions, Node: n.home.claims.Node(),
	}
	for _, name := range allRoles {
		if n.has(name) {
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
