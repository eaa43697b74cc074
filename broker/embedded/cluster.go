package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ErrNoQuorum reports that this node sees too few nodes of its cluster: nothing can be stored or
// acknowledged here. The text tells how many it sees.
var ErrNoQuorum = errors.New("no quorum")

const (
	defaultClusterPort = 6222
	defaultClusterSize = 3
	maxClusterSize     = 7
	// A route whose other side falls silent without a reset is closed in 4 to 6 s. The server's own
	// 90 s are longer than any caller waits for an error.
	routePing     = 2 * time.Second
	routePingsOut = 2
	// A node that is down is tried several times a second; one line for so many tries is enough.
	routeReports = 120
	clusterPoll  = 100 * time.Millisecond
	// sayAgain is how often those who wait for the cluster are told how it stands, if nothing
	// changes.
	sayAgain = 5 * time.Second
)

// Cluster makes the server one node of a JetStream cluster; the zero value is a server of its own.
//
// Every node has a store of its own. The streams of a cluster live in the stores of several nodes,
// and none of them is whole without the others' word for it. So a store is bound to its cluster and
// to its server's name for good: the cluster knows its members by those names, and deletes as
// orphans what streams it does not know.
type Cluster struct {
	// Name is the same on all nodes: up to 64 letters, digits, '-', '_' and '.'. Required for a
	// cluster.
	Name string
	// Routes are the nodes of the cluster, at least all others: nats://host:6222 or host:6222 each.
	// A route to this node itself does no harm, so that all nodes can be given the same list.
	Routes []string
	// Host is the address to listen on for the other nodes. Defaults to 127.0.0.1.
	Host string
	// Port is the port to listen on for the other nodes. Defaults to 6222.
	Port int
	// Advertise is what the other nodes tell each other of this one, host:port. Defaults to Host
	// and Port, or to the addresses of this machine if Host is one of all.
	Advertise string
	// Size is how many nodes the cluster has when it is whole, 3 to 7: more than half of them
	// decide. Defaults to 3.
	Size int
	// User and Password are demanded from the other nodes and shown to them, the same on all. Both
	// or none. Default to none.
	User, Password string
}

// on tells whether there is a cluster at all.
func (c Cluster) on() bool { return c.Name != "" }

// given tells whether anything of it is set.
func (c Cluster) given() bool {
	return c.on() || len(c.Routes) > 0 || c.Host != "" || c.Port != 0 || c.Advertise != "" ||
		c.Size != 0 || c.User != "" || c.Password != ""
}

func (c Cluster) withDefaults() Cluster {
	c.Host = cmp.Or(c.Host, defaultHost)
	c.Port = cmp.Or(c.Port, defaultClusterPort)
	c.Size = cmp.Or(c.Size, defaultClusterSize)
	return c
}

// validate judges a cluster that has its defaults.
func (c Cluster) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidOptions, fmt.Sprintf(format, args...))
	}
	switch {
	case len(c.Name) > maxServerName || strings.Trim(c.Name, serverNameLetters) != "":
		return bad("Cluster.Name is %q: use up to %d letters, digits, '-', '_' and '.'",
			c.Name, maxServerName)
	case c.Size < defaultClusterSize || c.Size > maxClusterSize:
		return bad("Cluster.Size is %d: use %d to %d, or 0 for %d; fewer survive no loss",
			c.Size, defaultClusterSize, maxClusterSize, defaultClusterSize)
	case c.Port < 1 || c.Port > 65535:
		return bad("Cluster.Port is %d: use 1 to 65535, or 0 for %d; the other nodes must know it",
			c.Port, defaultClusterPort)
	case !validHost(c.Host):
		return bad(
			"Cluster.Host is %q: use an IP address or a host name without port; the port goes into Cluster.Port",
			c.Host)
	case (c.User == "") != (c.Password == ""):
		return bad("Cluster.User and Cluster.Password belong together: use both or none")
	case len(c.Routes) < c.Size-1:
		return bad(
			"Cluster.Routes names %d nodes of %d: use the addresses of all nodes; with fewer, "+
				"two halves could each begin a cluster", len(c.Routes), c.Size)
	}
	if c.Advertise != "" {
		if _, port, err := net.SplitHostPort(c.Advertise); err != nil || !validPort(port) {
			return bad("Cluster.Advertise is %q: use host:port, as the other nodes reach this one",
				c.Advertise)
		}
	}
	seen := map[string]bool{}
	for _, r := range c.Routes {
		u, err := c.route(r)
		if err != nil {
			return bad("Cluster.Routes has %q: use nats://host:6222 or host:6222 (%v)",
				redacted(r), err)
		}
		if seen[u.Host] {
			return bad("Cluster.Routes has %s twice: use each node once", u.Host)
		}
		seen[u.Host] = true
	}
	return nil
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n <= 65535
}

// redacted is a route without its password.
func redacted(route string) string {
	if at := strings.LastIndexByte(route, '@'); at >= 0 {
		return "…" + route[at:]
	}
	return route
}

// route reads an address. One without a user gets that of the cluster.
func (c Cluster) route(s string) (*url.URL, error) {
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("it is no address")
	case u.Scheme != "nats" && u.Scheme != "nats-route":
		return nil, fmt.Errorf("its scheme is %q", u.Scheme)
	case u.Hostname() == "" || !validHost(u.Hostname()):
		return nil, errors.New("it has no host")
	case !validPort(u.Port()):
		return nil, errors.New("it has no port")
	case u.Path != "" || u.RawQuery != "":
		return nil, errors.New("something follows the port")
	}
	if u.User == nil && c.User != "" {
		u.User = url.UserPassword(c.User, c.Password)
	}
	return u, nil
}

// apply adds the cluster to the server's options.
func (c Cluster) apply(so *server.Options) {
	if !c.on() {
		return
	}
	so.Cluster = server.ClusterOpts{
		Name: c.Name, Host: c.Host, Port: c.Port, Advertise: c.Advertise, Username: c.User,
		Password: c.Password, PingInterval: routePing, MaxPingsOut: routePingsOut,
	}
	so.ReconnectErrorReports = routeReports
	for _, r := range c.Routes {
		if u, err := c.route(r); err == nil { // validate has seen them all
			so.Routes = append(so.Routes, u)
		}
	}
}

// Clustered reports whether the server is a node of a cluster.
func (s *Server) Clustered() bool { return s.opts.Cluster.on() }

// ClusterName returns the name of the cluster, or "".
func (s *Server) ClusterName() string { return s.opts.Cluster.Name }

// ServerName returns the server's name, by which its cluster knows it.
func (s *Server) ServerName() string { return s.srv.Name() }

// Seen tells how many nodes of the cluster this one is connected to, itself among them, and how
// many there are. Both are 1 for a server of its own.
func (s *Server) Seen() (seen, size int) {
	if !s.Clustered() {
		return 1, 1
	}
	size = s.opts.Cluster.Size
	if peers := len(s.srv.JetStreamClusterPeers()); peers > size { // only the leader tells
		size = peers
	}
	others := map[string]bool{}
	if routes, err := s.srv.Routez(nil); err == nil {
		for _, r := range routes.Routes {
			others[r.RemoteID] = true
		}
	}
	return 1 + len(others), size
}

// Quorum returns nil while this node sees more than half of its cluster, and [ErrNoQuorum]
// otherwise. A node that is shut down or killed is missed at once, one whose network falls silent
// after 4 to 6 s. Nil does not promise that a leader is elected already; that takes 4 to 6 s more,
// and requests wait for it.
func (s *Server) Quorum() error {
	if seen, size := s.Seen(); seen <= size/2 {
		return fmt.Errorf("%w: this node sees %d of %d servers of cluster %s",
			ErrNoQuorum, seen, size, s.opts.Cluster.Name)
	}
	return nil
}

// AwaitCluster returns when the cluster has a leader that this node follows, so that streams can be
// made and read. It tells say how it stands, at each change and now and then, and gives up only
// when ctx ends. It returns at once for a server of its own.
func (s *Server) AwaitCluster(ctx context.Context, say func(seen, size int)) error {
	if !s.Clustered() {
		return nil
	}
	tick := time.NewTicker(clusterPoll)
	defer tick.Stop()
	before, said := 0, time.Time{}
	for {
		if s.srv.Healthz(&server.HealthzOptions{JSMetaOnly: true}).StatusCode < 300 {
			return nil
		}
		seen, size := s.Seen()
		if seen != before || time.Since(said) >= sayAgain {
			before, said = seen, time.Now()
			say(seen, size)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("embedded server: waiting for cluster %s, %d of %d nodes seen: %w",
				s.opts.Cluster.Name, seen, size, context.Cause(ctx))
		}
	}
}

// String prints the cluster as one line of words without its password, for the log.
func (c Cluster) String() string {
	if !c.on() {
		return "none"
	}
	hosts := make([]string, 0, len(c.Routes))
	for _, r := range c.Routes {
		if u, err := c.route(r); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	slices.Sort(hosts)
	auth := "none"
	if c.User != "" {
		auth = "user"
	}
	return fmt.Sprintf("%s listen=%s size=%d routes=%s auth=%s", c.Name,
		net.JoinHostPort(c.Host, strconv.Itoa(c.Port)), c.Size, strings.Join(hosts, ","), auth)
}
