package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover"
	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/embedded"
	"github.com/droverhq/drover/broker/post"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/diskspace"
	"github.com/droverhq/drover/internal/pause"
	"github.com/droverhq/drover/schemas"
)

const (
	// clusterReplicas is how many nodes of a cluster hold each stream by default: the loss of one is survived.
	clusterReplicas = 3
	// openTimeout bounds one attempt of a node to make or find its namespace. On a cold start each stream elects its leader.
	openTimeout = time.Minute
	// hesitation is how long a cluster whose nodes are all there may refuse to make a stream: its leader learns a little later
	// than we do what the others offer.
	hesitation = 30 * time.Second
	openPause  = 500 * time.Millisecond
)

// clusterFlags make the embedded server a node of a cluster.
type clusterFlags struct {
	name, host, advertise, user, password string
	routes                                []string
	port, size                            int
}

// clusterFlagNames are all of them but the name itself.
var clusterFlagNames = []string{"routes", "cluster-host", "cluster-port", "cluster-advertise", "cluster-size", "cluster-user", "cluster-password"}

func (c *clusterFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.name, "cluster-name", "", "make the embedded server a node of this cluster; the same name on all nodes")
	fs.StringSliceVar(&c.routes, "routes", nil, "addresses of the nodes of the cluster, nats://host:6222 each; all nodes may get the same list")
	fs.StringVar(&c.host, "cluster-host", "127.0.0.1", "address to listen on for the other nodes")
	fs.IntVar(&c.port, "cluster-port", 6222, "port to listen on for the other nodes")
	fs.StringVar(&c.advertise, "cluster-advertise", "", "host:port by which the other nodes reach this one (default where it listens)")
	fs.IntVar(&c.size, "cluster-size", 3, "nodes of the whole cluster")
	fs.StringVar(&c.user, "cluster-user", "", "user that nodes show each other, the same on all")
	fs.StringVar(&c.password, "cluster-password", "", "password that nodes show each other, the same on all")
}

// check refuses combinations of flags that make no sense. What remains is judged by the embedded server itself.
func (f *serverFlags) checkCluster(cmd *cobra.Command) error {
	fs, c := cmd.Flags(), &f.cluster
	if !fs.Changed("cluster-name") {
		for _, name := range clusterFlagNames {
			if fs.Changed(name) {
				return fmt.Errorf("--%s is given, which needs --cluster-name", name)
			}
		}
		switch {
		case f.profile == "cluster":
			return fmt.Errorf("--profile is cluster, which needs --cluster-name and --routes")
		case fs.Changed("replicas"):
			return fmt.Errorf("--replicas is given, which needs --cluster-name, --nats or --context")
		}
		return nil
	}
	switch {
	case c.name == "" || strings.ContainsAny(c.name, " \t\r\n"):
		return fmt.Errorf("--cluster-name is %q: use a name without spaces, the same on all nodes", c.name)
	case len(c.routes) == 0:
		return fmt.Errorf("--cluster-name is given without --routes: name the other nodes, such as --routes nats://n1:6222,nats://n2:6222,nats://n3:6222")
	case f.memory:
		return fmt.Errorf("--memory and --cluster-name exclude each other: a node must remember what it has agreed to, give it a --store")
	case f.profile != "" && f.profile != "cluster":
		return fmt.Errorf("--profile is %s, and a node with --cluster-name has profile cluster: leave it out", f.profile)
	case f.replicas > c.size:
		return fmt.Errorf("--replicas is %d, and --cluster-size %d: as many nodes as replicas are needed", f.replicas, c.size)
	}
	return nil
}

// options are those of the embedded server. Its server bears the name of the node, if that was given.
func (c *clusterFlags) options(o *embedded.Options, node string) {
	if c.name == "" {
		return
	}
	o.ServerName = node
	o.Cluster = embedded.Cluster{
		Name: c.name, Routes: c.routes, Host: c.host, Port: c.port, Advertise: c.advertise, Size: c.size,
		User: c.user, Password: c.password,
	}
}

// fieldFlags are the flags behind the fields that packages of the server complain of, and what they say of values that flags have not,
// or mean otherwise: most refuse 0, and no port is a free one.
var fieldFlags = strings.NewReplacer(
	"Cluster.Name", "--cluster-name", "Cluster.Routes", "--routes", "Cluster.Host", "--cluster-host", "Cluster.Port", "--cluster-port",
	"Cluster.Advertise", "--cluster-advertise", "Cluster.Size", "--cluster-size", "Cluster.User", "--cluster-user",
	"Cluster.Password", "--cluster-password", "without Cluster", "without --cluster-name", "ServerName", "--node", "StoreDir", "--store",
	"TTL is", "--claim-ttl is", "Partitions is", "--partitions is", "Replicas is", "--replicas is", "MaxBytes is", "--max-bytes is",
	"Compression is", "--compression is", "Description has", "--description has", "FlowRetention:", "--retention-flows:", "Retention:", "--retention:",
	"Port is", "--port is", "another Port", "another --port", "a Port above", "a --port above", "Host must be", "--host must be", "MaxPayload is", "--max-payload is", "Profile is", "--profile is",
	"use ProfileDev", "use --profile dev", ", -1 for a random one or 0 for 4222", ", or 0 for a free one",
	"-1 for no limit", "NONE for no limit", "or 0 for", "or leave it out for",
)

// flagError is an error whose text speaks of flags instead of fields.
type flagError struct {
	text string
	err  error
}

func (e *flagError) Error() string { return e.text }
func (e *flagError) Unwrap() error { return e.err }

// inFlags makes an error about options speak the language of the command line.
func inFlags(err error) error {
	if text := fieldFlags.Replace(err.Error()); text != err.Error() {
		return &flagError{text, err}
	}
	return err
}

// refusalInFlags is inFlags for a refusal by a server.
func refusalInFlags(err error) error {
	e, ok := errors.AsType[*drover.Error](err)
	refusal, refused := errors.AsType[*schemas.Error](err)
	if !ok || !refused || refusal.Code != schemas.CodeInvalid {
		return err
	}
	told, about := *e, *refusal
	about.Message = fieldFlags.Replace(refusal.Message)
	told.Err = &about
	return &told
}

// clustered tells whether this node's own server is part of a cluster.
func (n *node) clustered() bool { return n.server != nil && n.server.Clustered() }

// quorum is what brokers ask: whether anything can be acknowledged here. It is nil for a server elsewhere and for one in
// memory.
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
			err, hint = fmt.Errorf("its streams have %d bytes, and %d are allowed", bytes, limit), "start the server again: it then takes three quarters of what is free on its disk; make room there before"
		}
		if err == nil {
			return nil
		}
		e := schemas.Errorf(schemas.CodeUnavailable, "the store cannot be written: %v; nothing is acknowledged", err).
			WithHint("%s; a request may be repeated with its request id, it will not happen twice", hint)
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

// expendable is called before anything goes to a stream of tasks or alarms, nil if these are synced like others.
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

// predecessors names the servers that had the store of this node's own server before, as far back as they ended with
// everything on disk.
func (n *node) predecessors() []string {
	if n.server == nil {
		return nil
	}
	return n.server.Predecessors()
}

// openHome makes the home or finds it. A node of a cluster waits for the others for as long as it takes, and refuses
// requests meanwhile: it may have been started first, or be the only one left.
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
		if !passing(err) && (!errors.Is(err, topology.ErrRefused) || seen >= size && time.Since(began) > hesitation) {
			return err
		}
		n.log.WithError(err).Warnf("the namespace cannot be opened yet, %d of %d nodes seen; trying again", seen, size)
		if pause.For(ctx, openPause) != nil {
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

// passing tells whether an error may heal by itself: a leader is being elected, or a node is on its way.
func passing(err error) bool {
	return slices.ContainsFunc([]error{
		context.DeadlineExceeded, post.ErrTimeout, post.ErrNoResponders, post.ErrNoStream, post.ErrDisconnected,
	}, func(target error) bool { return errors.Is(err, target) })
}
