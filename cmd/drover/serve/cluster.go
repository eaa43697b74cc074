package serve

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/droverhq/drover/broker/embedded"
)

// clusterFlags make the embedded server a node of a cluster.
type clusterFlags struct {
	name, host, advertise, user, password string
	routes                                []string
	port, size                            int
}

// clusterFlagNames are all of them but the name itself.
var clusterFlagNames = []string{
	"routes", "cluster-host", "cluster-port", "cluster-advertise", "cluster-size", "cluster-user",
	"cluster-password",
}

func (c *clusterFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&c.name, "cluster-name", "",
		"make the embedded server a node of this cluster; the same name on all nodes")
	fs.StringSliceVar(&c.routes, "routes", nil,
		"addresses of the nodes of the cluster, nats://host:6222 each; all nodes may get the same list")
	fs.StringVar(&c.host, "cluster-host", "127.0.0.1", "address to listen on for the other nodes")
	fs.IntVar(&c.port, "cluster-port", 6222, "port to listen on for the other nodes")
	fs.StringVar(&c.advertise, "cluster-advertise", "",
		"host:port by which the other nodes reach this one (default where it listens)")
	fs.IntVar(&c.size, "cluster-size", 3, "nodes of the whole cluster")
	fs.StringVar(&c.user, "cluster-user", "", "user that nodes show each other, the same on all")
	fs.StringVar(&c.password, "cluster-password", "",
		"password that nodes show each other, the same on all")
}

// check refuses combinations of flags that make no sense. What remains is judged by the embedded
// server itself.
func (f *ServerFlags) checkCluster(cmd *cobra.Command) error {
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
			return fmt.Errorf(
				"--replicas is given, which needs --cluster-name, --nats or --context")
		}
		return nil
	}
	switch {
	case c.name == "" || strings.ContainsAny(c.name, " \t\r\n"):
		return fmt.Errorf("--cluster-name is %q: use a name without spaces, the same on all nodes",
			c.name)
	case len(c.routes) == 0:
		return fmt.Errorf(
			"--cluster-name is given without --routes: name the other nodes, such as --routes " +
				"nats://n1:6222,nats://n2:6222,nats://n3:6222")
	case f.memory:
		return fmt.Errorf(
			"--memory and --cluster-name exclude each other: a node must remember what it has " +
				"agreed to, give it a --store")
	case f.profile != "" && f.profile != "cluster":
		return fmt.Errorf(
			"--profile is %s, and a node with --cluster-name has profile cluster: leave it out",
			f.profile)
	case f.replicas > c.size:
		return fmt.Errorf(
			"--replicas is %d, and --cluster-size %d: as many nodes as replicas are needed",
			f.replicas, c.size)
	}
	return nil
}

// options are those of the embedded server. Its server bears the name of the node, if that was
// given.
func (c *clusterFlags) options(o *embedded.Options, node string) {
	if c.name == "" {
		return
	}
	o.ServerName = node
	o.Cluster = embedded.Cluster{
		Name: c.name, Routes: c.routes, Host: c.host, Port: c.port, Advertise: c.advertise,
		Size: c.size, User: c.user, Password: c.password,
	}
}
