package schemas

// NamespaceSubject is the request subject of one verb of the service that keeps the namespaces of a
// NATS account: create, list, describe and delete. It lies outside every namespace, so a user who
// may use one namespace can be kept from it.
func NamespaceSubject(verb string) string { return "drover-server.namespace." + verb }

// NamespacesChanged is where whoever makes or deletes a namespace says so, with its name as the
// body, so that servers need not wait for their next look.
const NamespacesChanged = "drover-server.changed"

// NamespaceRequest asks for one of the verbs. Name is the namespace; the fields below it belong to
// create, but for those that say otherwise. What is left out is what the namespace has, or the
// default of the server.
type NamespaceRequest struct {
	V    int    `json:"v,omitempty"`
	Name string `json:"name,omitempty"`
	// Partitions is fixed when the namespace is made.
	Partitions int `json:"partitions,omitempty"`
	Replicas   int `json:"replicas,omitempty"`
	// MaxBytes limits each stream, in bytes; -1 takes the limit away.
	MaxBytes int64 `json:"maxBytes,omitempty"`
	// Compression of histories: none or s2.
	Compression  string `json:"compression,omitempty"`
	RequireTypes *bool  `json:"requireTypes,omitempty"`
	Description  string `json:"description,omitempty"`
	// FlowRetention says how closed runs of flows are kept that say nothing themselves, Retention
	// those of other types: expressions such as "3 soft 3" and 7d.
	FlowRetention string `json:"flowRetention,omitempty"`
	Retention     string `json:"retention,omitempty"`
	// Force deletes a namespace that has open runs. It belongs to delete, as do Reason and
	// Identity, which say why and who.
	Force    bool   `json:"force,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Identity string `json:"identity,omitempty"`
	// CreatedAt belongs to delete too: only the namespace that was made then is deleted. A request
	// may be read late, after the end of that one, and would delete a later one of its name.
	CreatedAt Timestamp `json:"createdAt,omitempty"`
	// After is the cursor of a list, Limit how long its page may be.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// NamespaceStatus is where a namespace stands.
type NamespaceStatus string

// The statuses of a namespace.
const (
	NamespaceReady NamespaceStatus = "ready"
	// NamespaceDeleting: somebody has begun to delete it. Nobody serves it; deleting it again
	// finishes that.
	NamespaceDeleting NamespaceStatus = "deleting"
	// NamespaceIncomplete: some of its streams or buckets are not there, as where NATS refused one
	// of them; creating it again makes them.
	NamespaceIncomplete NamespaceStatus = "incomplete"
)

// NamespaceInfo is a namespace. Usage and Lists are told by describe only.
type NamespaceInfo struct {
	Name       string          `json:"name"`
	Status     NamespaceStatus `json:"status"`
	Partitions int             `json:"partitions"`
	Replicas   int             `json:"replicas"`
	// MaxBytes limits each stream, in bytes; 0 means no limit.
	MaxBytes int64 `json:"maxBytes"`
	// Compression of histories: none or s2.
	Compression string `json:"compression,omitempty"`
	// RequireTypes refuses workflows and activities whose types are not registered.
	RequireTypes bool   `json:"requireTypes"`
	Description  string `json:"description,omitempty"`
	// FlowRetention says how closed runs of flows are kept that say nothing themselves, Retention
	// those of other types.
	FlowRetention string `json:"flowRetention,omitempty"`
	Retention     string `json:"retention,omitempty"`
	// Storage is file or memory.
	Storage   string    `json:"storage"`
	CreatedAt Timestamp `json:"createdAt"`
	// Usage tells what each kind of stream holds.
	Usage []NamespaceUsage `json:"usage,omitempty"`
	// Lists are the task lists.
	Lists []string `json:"lists,omitempty"`
}

// NamespaceUsage sums up the streams of one kind: signals, inbox, history, alarms, tasks, dead,
// buckets or payloads.
type NamespaceUsage struct {
	Kind     string `json:"kind"`
	Streams  int    `json:"streams"`
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
}

// NamespaceResponse answers create, describe and delete. After a delete Namespace is nil once
// nothing is left, and until then bears the status deleting: repeat the request to wait for the
// end.
type NamespaceResponse struct {
	V         int            `json:"v,omitempty"`
	Namespace *NamespaceInfo `json:"namespace,omitempty"`
	Error     *Error         `json:"error,omitempty"`
}

// NamespaceListResponse is a page of a list, sorted by name; After continues it and is empty at its
// end.
type NamespaceListResponse struct {
	V          int             `json:"v,omitempty"`
	Namespaces []NamespaceInfo `json:"namespaces"`
	After      string          `json:"after,omitempty"`
	Error      *Error          `json:"error,omitempty"`
}
