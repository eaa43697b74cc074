package schemas

// NodeStatus is where a node stands.
type NodeStatus string

// The statuses of a node.
const (
	// NodeRecovering: it has begun, and what its predecessors may have left undone is being looked
	// at.
	NodeRecovering NodeStatus = "recovering"
	// NodeReady: its roles are at work.
	NodeReady NodeStatus = "ready"
	// NodeDraining: it takes no more work, finishes what runs and leaves.
	NodeDraining NodeStatus = "draining"
	// NodeNotResponding: the master has not heard of it for longer than the threshold. Its next
	// heartbeat makes it what it was.
	NodeNotResponding NodeStatus = "not-responding"
	// NodeUnexpectedShutdown: it has begun and found the record of an earlier self, which had not
	// ended properly. With after-crash halt its roles wait for an operator.
	NodeUnexpectedShutdown NodeStatus = "unexpected-shutdown"
)

// NodeRecord is what a node writes about itself into the bucket of nodes, as JSON, again and again
// while it lives. A clean end removes it.
type NodeRecord struct {
	V      int        `json:"v,omitempty"`
	Node   string     `json:"node"`          // its name
	Host   string     `json:"host"`          // of the machine
	PID    int        `json:"pid,omitempty"` // of the process
	Status NodeStatus `json:"status"`
	// Since is when the status was written first, by the clock of who wrote it.
	Since Timestamp `json:"since"`
	// Started is when the process began, by the node's clock.
	Started Timestamp `json:"started"`
	// RolesSince is when the roles began, by the NATS server's clock: at the start of the process,
	// or after its last recycle.
	RolesSince Timestamp `json:"rolesSince,omitempty"`
	// LastActive is the node's own clock at the last heartbeat. Others judge by the time at which
	// the server stored it; the difference is how far the two clocks are apart.
	LastActive Timestamp `json:"lastActive"`
	// Heard is when the server stored the last heartbeat, by its clock; written by the master with
	// not-responding.
	Heard Timestamp `json:"heard,omitempty"`
	// Heartbeat is the time between two heartbeats.
	Heartbeat Duration `json:"heartbeat"`
	// Boot is drawn at each start. StoreID is that of the embedded server's store; the same store
	// with another boot is a former self that is dead for certain.
	Boot    string `json:"boot"`
	StoreID string `json:"storeId,omitempty"` // of the embedded server's store
	// Namespace is the node's home: its control subject is there. Namespaces are those it serves.
	Namespace  string   `json:"namespace"`
	Namespaces []string `json:"namespaces,omitempty"`
	// Roles of the process: broker, timers, ops, flows.
	Roles []string `json:"roles"`
	// Version of the program.
	Version string `json:"version"`
	// Profile is dev, single or cluster for an embedded server, and external for one elsewhere.
	Profile string `json:"profile"`
	// Server is the id of the NATS server, drawn at its start.
	Server        string `json:"server,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"` // of the NATS server
	URL           string `json:"url,omitempty"`           // of the NATS server, for clients
	// Sync says when the embedded server's files are synced: "always", or a duration such as "1s".
	// Unknown for one elsewhere.
	Sync string `json:"sync,omitempty"`
	// DiskFree is the bytes that are free on the file system of the embedded server's store.
	DiskFree  uint64 `json:"diskFree,omitempty"`
	DiskTotal uint64 `json:"diskTotal,omitempty"` // bytes of that file system
	// InodesFree is how many more files that file system can hold, of InodesTotal; both are left
	// out where it says no number.
	InodesFree  uint64 `json:"inodesFree,omitempty"`
	InodesTotal uint64 `json:"inodesTotal,omitempty"` // files that it can hold
}
