package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

const (
	// clusterReplicas is how many nodes of a cluster hold each stream by default: the loss of one
	// is survived.
	clusterReplicas = 3
	// openTimeout bounds one attempt of a node to make or find its namespace. On a cold start each
	// stream elects its leader.
	openTimeout = time.Minute
	// hesitation is how long a cluster whose nodes are all there may refuse to make a stream: its
	// leader learns a little later than we do what the others offer.
	hesitation = 30 * time.Second
	openPause  = 500 * time.Millisecond
)

// clustered tells whether this node's own server is part of a cluster.
func (n *node) clustered() bool { return n.server != nil && n.server.Clustered() }

// quorum is what brokers ask: whether anything can be acknowledged here. It is nil for a server
// elsewhere and for one in memory.
func (n *node) quorum() func() error {
	switch {
	case n.clustered():
		return n.server.Quorum
	case n.server == nil || n.server.Memory():
		return nil
	}
	return func() error {
		err, hint := n.server.Writable(), "make room on the server's disk, or mend the store, and start it again"
		if err != nil {
			if short := diskspace.Short(n.server.StoreDir()); short != "" {
				hint = short + ", and start the server again"
			}
		}
		if errors.Is(err, embedded.ErrStoreGone) {
			hint = "stop the server, put its store back where it was, and start it again"
		}
		if bytes, limit := n.server.Room(); err == nil && bytes > limit {
			err, hint = fmt.Errorf("its streams have %d bytes, and %d are allowed", bytes, limit),
				"start the server again: it then takes three quarters of what is free on its "+
					"disk; make room there before"
		}
		if err == nil {
			return nil
		}
		e := schemas.Errorf(schemas.CodeUnavailable,
			"the store cannot be written: %v; nothing is acknowledged", err).
			WithHint("%s; a request may be repeated with its request id, it will not happen twice",
				hint)
		e.Final = true
		return e
	}
}

// room is what brokers ask: how full this node's own server is. It is nil for a server elsewhere.
func (n *node) room() func() (bytes, limit int64) {
	if n.server == nil {
		return nil
	}
	return n.server.Room
}

// single tells whether this node's own server is the only one and syncs every write.
func (n *node) single() bool { return n.server != nil && n.server.Profile() == embedded.ProfileSingle }

// stage is what brokers call before they commit in groups, nil where that does not pay.
func (n *node) stage() func(stream string) error {
	if !n.single() {
		return nil
	}
	return n.server.Stage
}

// expendable is called before anything goes to a stream of tasks or alarms, nil if these are synced
// like others.
func (t *tenant) expendable() func(stream string) error {
	if !t.space.Relaxed || t.node.server == nil {
		return nil
	}
	return t.node.server.Expendable
}

// synced tells whether this node's own server loses nothing that it has acknowledged.
func (n *node) synced() bool {
	return n.server != nil && n.server.Profile() != embedded.ProfileDev
}

// predecessors names the servers that had the store of this node's own server before, as far back
// as they ended with everything on disk.
func (n *node) predecessors() []string {
	if n.server == nil {
		return nil
	}
	return n.server.Predecessors()
}

// openHome makes the home or finds it. A node of a cluster waits for the others for as long as it
// takes, and refuses requests meanwhile: it may have been started first, or be the only one left.
func (n *node) openHome(ctx context.Context, o topology.Options) error {
	if !n.clustered() {
		return n.makeHome(ctx, o)
	}
	waiting, served := context.WithCancel(ctx)
	defer served()
	conn, err := n.dial(ctx, "drover server waiting")
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		if err := broker.RefuseRequests(waiting, conn, n.server.Quorum); err != nil {
			n.log.WithError(err).Warn("requests are not answered until the cluster is there")
		}
	}()
	for began := time.Now(); ; {
		err := n.server.AwaitCluster(ctx, func(seen, size int) {
			began = time.Now()
			n.log.Infof("waiting for the cluster: %d of %d nodes seen", seen, size)
		})
		if err != nil {
			return err
		}
		if err = n.tryHome(ctx, o); err == nil || ctx.Err() != nil {
			return err
		}
		seen, size := n.server.Seen()
		if !passing(err) && (!errors.Is(err, topology.ErrRefused) ||
			seen >= size && time.Since(began) > hesitation) {
			return err
		}
		n.log.WithError(err).Warnf(
			"the namespace cannot be opened yet, %d of %d nodes seen; trying again", seen, size)
		if sleep.For(ctx, openPause) != nil {
			return context.Cause(ctx)
		}
	}
}

// tryHome is one attempt. A new namespace gets as many replicas as the cluster can bear.
func (n *node) tryHome(ctx context.Context, o topology.Options) error {
	one, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if o.Replicas == 0 {
		_, err := topology.Lookup(one, n.conn, subject.Namespace(o.Namespace))
		switch {
		case errors.Is(err, topology.ErrNoNamespace):
			o.Replicas = clusterReplicas
		case err != nil:
			return err
		}
	}
	return n.makeHome(one, o)
}

// passing tells whether an error may heal by itself: a leader is being elected, or a node is on its
// way.
func passing(err error) bool {
	return isAny(err, context.DeadlineExceeded, natsconn.ErrTimeout, natsconn.ErrNoResponders,
		natsconn.ErrNoStream, natsconn.ErrDisconnected)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
