package ops

import "github.com/droverhq/drover/schemas"

// Recycle is when the nodes of a deployment restart their roles, one after the other: the value of
// the key recycle in the bucket of schedules of their home namespace.
type Recycle struct {
	V int `json:"v,omitempty"`
	// At is the time of day, such as 03:30. Empty means never.
	At string `json:"at,omitempty"`
	// TimeZone is that of At: an IANA name. Defaults to UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Every is the time between two recycles, in whole days. Defaults to 24h.
	Every schemas.Duration `json:"every,omitempty"`
	// Notice is how long before the first node it is announced. Defaults to 10m.
	Notice schemas.Duration `json:"notice,omitempty"`
	// Stagger is the time between two nodes. Defaults to 2m.
	Stagger   schemas.Duration  `json:"stagger,omitempty"`
	UpdatedAt schemas.Timestamp `json:"updatedAt,omitempty"`
	Identity  string            `json:"identity,omitempty"`
	// Asked is when a recycle begins, or has begun, that somebody asked for with recycleNow.
	Asked schemas.Timestamp `json:"asked,omitempty"`
}

// RecycleRequest is for recycleSet, recycleShow and recycleNow.
type RecycleRequest struct {
	V int `json:"v,omitempty"`
	// Recycle is what recycleSet sets.
	Recycle *Recycle `json:"recycle,omitempty"`
	// Notice is that of recycleNow. Defaults to none.
	Notice   schemas.Duration `json:"notice,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Identity string           `json:"identity,omitempty"`
}

// RecycleResponse is how recycles stand.
type RecycleResponse struct {
	V       int      `json:"v,omitempty"`
	Recycle *Recycle `json:"recycle,omitempty"`
	// Next is when the next one begins.
	Next schemas.Timestamp `json:"next,omitempty"`
	// Latest is the last notice: where a recycle stands that is announced or goes on, or how the
	// last one ended.
	Latest *RecycleNotice `json:"latest,omitempty"`
	Nodes  []RecycleNode  `json:"nodes,omitempty"`
	Error  *schemas.Error `json:"error,omitempty"`
}

// RecycleNode is how a node stands with recycles.
type RecycleNode struct {
	Node string `json:"node"`
	// Since is when its roles began.
	Since schemas.Timestamp `json:"since,omitempty"`
	// Phase is where it stands in a recycle that goes on; empty if none does.
	Phase RecyclePhase `json:"phase,omitempty"`
}

// RecyclePhase is where a recycle stands.
type RecyclePhase string

// The phases of a recycle.
const (
	RecycleAnnounced RecyclePhase = "announced" // it will begin at a time
	RecycleDraining  RecyclePhase = "draining"  // a node ends what runs and hands over
	// the process of a node ends; something else starts it again
	RecycleExited   RecyclePhase = "exited"
	RecycleReturned RecyclePhase = "returned" // the roles of a node run again
	// all nodes have had their turn, or it was called off, which reason says
	RecycleFinished RecyclePhase = "finished"
)

// RecycleNotice is published when a recycle is announced, and at each of its steps. Anyone may
// subscribe. The last one is the value of the key recycle.state in the bucket of schedules.
type RecycleNotice struct {
	V     int          `json:"v,omitempty"`
	Phase RecyclePhase `json:"phase"`
	// Slot is the recycle that is meant: when it was due.
	Slot schemas.Timestamp `json:"slot"`
	// At is when it begins, or when this has happened.
	At     schemas.Timestamp `json:"at"`
	Node   string            `json:"node,omitempty"`
	Reason string            `json:"reason,omitempty"`
}
