package server

// Info is what a server that is ready says of itself. As JSON it is the ready line of "drover
// server --json".
type Info struct {
	Ready      bool     `json:"ready"`
	URL        string   `json:"url"`
	Profile    string   `json:"profile"`
	Namespace  string   `json:"namespace"`
	Partitions int      `json:"partitions"`
	Node       string   `json:"node"`
	Roles      []string `json:"roles"`
	Store      string   `json:"store,omitempty"`
	// Of a node of a cluster alone: its name, that of this server in it, how many nodes it has when
	// it is whole, and how many of them hold each stream.
	Cluster  string `json:"cluster,omitempty"`
	Server   string `json:"server,omitempty"`
	Size     int    `json:"clusterSize,omitempty"`
	Replicas int    `json:"replicas,omitempty"`
}

func (n *node) info() Info {
	r := Info{
		Ready: true, Profile: "external", Namespace: string(n.home.space.Name),
		Partitions: n.home.space.Partitions, Node: n.member.Name(), Roles: n.o.Roles,
	}
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
