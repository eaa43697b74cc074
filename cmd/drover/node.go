package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
)

const (
	// releaseTimeout bounds giving the node's name back.
	releaseTimeout = time.Second
	// nodeNames is how many names are tried for a node that was given none.
	nodeNames = 64
)

// node is a server at work: what its roles share.
type node struct {
	o   serveOptions
	log logrus.FieldLogger

	server *embedded.Server // nil with External
	conn   *post.Conn       // of all roles but the broker, which opens its own
	space  *topology.Namespace
	claims *claims.Claims
	name   *claims.Lease  // of the node's name; nil if the name was given
	broker *broker.Broker // nil without the role
}

func (n *node) open(ctx context.Context) error {
	if n.o.External == nil {
		o := n.o.Embedded
		o.Logger = n.log
		server, err := embedded.Start(ctx, o)
		if err != nil {
			return err
		}
		n.server = server
	}
	var err error
	if n.conn, err = n.dial(ctx, "drover server"); err != nil {
		return err
	}
	n.space, err = topology.Ensure(ctx, n.conn, topology.Options{
		Namespace: n.o.Namespace, Partitions: n.o.Partitions, Replicas: n.o.Replicas,
		Memory: n.server != nil && n.server.Memory(), Version: versionName(), Logger: n.log,
	})
	if err != nil {
		return err
	}
	return n.openClaims(ctx)
}

func (n *node) dial(ctx context.Context, name string) (*post.Conn, error) {
	var o post.Options
	if n.server != nil {
		o.InProcess = n.server.Conn()
	} else {
		o = *n.o.External
	}
	o.Name, o.Logger = name, n.log
	return post.Dial(ctx, o)
}

// openClaims gives the node its name and its claims. A name that was given is taken as it is: a server that is started
// again after a crash must not wait until the claims of its former self have run out.
func (n *node) openClaims(ctx context.Context) error {
	o := claims.Options{Node: n.o.Node, TTL: n.o.ClaimTTL, Logger: n.log}
	if n.server != nil {
		o.StoreID, o.Boot = n.server.StoreID(), n.server.Boot()
	}
	var err error
	if o.Node != "" {
		n.claims, err = claims.Open(n.conn, n.space.Name.BucketClaims(), o)
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
		if free, err := n.takeName(ctx, o); free || err != nil {
			return err
		}
	}
	return fmt.Errorf("%d nodes named %s-… are alive: name this one with --node", nodeNames, host)
}

// takeName holds o.Node as this node's name for as long as it lives, unless a live node has it: one that holds the name
// too, or one that was given it and holds any claim.
func (n *node) takeName(ctx context.Context, o claims.Options) (free bool, err error) {
	c, err := claims.Open(n.conn, n.space.Name.BucketClaims(), o)
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
	n.claims, n.name = c, lease
	return true, nil
}

// keyForm matches what a key of a bucket may not hold.
var keyForm = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// close ends what open began, the server last.
func (n *node) close() {
	if n.name != nil {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		if err := n.name.Release(ctx); err != nil {
			n.log.WithError(err).Debug("the node's name is not given back, it will expire")
		}
	}
	if n.conn != nil {
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
	}
}
