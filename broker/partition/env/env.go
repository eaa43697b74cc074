// Package env is what all partitions of a broker share: its options, its connections, its clock,
// the room that the server has left, and the lanes that bound how much is under way. The broker
// makes one [Env]; partitions and the API use it.
//
// Everything here may be used by any goroutine, but for what says otherwise.
package env

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/types"
	"github.com/droverhq/drover/schemas"
)

// Env is what all partitions of a broker share: its options, its connections, its clock, what is
// known of the server, and the lanes that bound how much is under way. Everything in it may be used
// by any goroutine.
type Env struct {
	Options Options
	NS      subject.Namespace
	Conn    *natsconn.Conn // to write
	Reads   *natsconn.Conn
	clock   serverClock
	Share   *claims.Share

	RecordLimit atomic.Int64 // the largest body that is published; see Measure
	current     atomic.Pointer[execution.Config]
	Types       *types.Table // set before the API serves
	Locks       *keyed.Table // set before the API serves

	Background context.Context // of Run; for reads that outlive a term
	Work       sync.WaitGroup
	Passing    sync.WaitGroup // partitions that are given away and still pass on answers of deciders
	// Answering are requests that are read for.
	Answering InFlight
	// Scans gives turns to those that read much.
	Scans runs.Scans
	// Histories reads the histories; set before the API serves.
	Histories *runs.Reader
	Readers   Lane // of histories
	Writers   Lane // short writes of owners: see WriteAsync
	looks     listLooks
	// Replays bounds those that are being prepared: a decider may take its time over each.
	Replays chan struct{}
	Relay   *RequestRelay
	Store   *payloads.Store
	storing atomic.Int64 // bytes of starts that are being put into the store
	// Promised are the bytes of uploads that are under way; set before the API serves.
	Promised    func() int64
	ServerQuota atomic.Pointer[Quota] // how full the NATS server is; nil if it is not known
}

// maxReaders bounds how many reads of histories a broker has under way, maxWriters how many short
// writes that are not acknowledged on the loop.
const maxReaders, maxWriters = 64, 64

// MostReplays bounds how many replays a broker prepares at a time.
const MostReplays = 64

// New returns what the partitions of a broker with these options share. Connections, and what is
// read over them, are set by the broker before it owns a partition.
func New(o Options) *Env {
	e := &Env{
		Options: o, NS: subject.Namespace(o.Namespace),
		clock:   serverClock{doubt: make(chan struct{}, 1)},
		Readers: make(Lane, maxReaders), Writers: make(Lane, maxWriters),
		Replays: make(chan struct{}, MostReplays),
	}
	e.current.Store(&e.Options.Execution)
	return e
}

// Config is what the core is told of the namespace. It changes as a whole, when the registered
// types do.
func (e *Env) Config() *execution.Config { return e.current.Load() }

// setTypes changes the table of registered types.
func (e *Env) setTypes(t *execution.Types) {
	e.change(func(c *execution.Config) { c.Types = t })
}

func (e *Env) change(fn func(*execution.Config)) {
	for {
		old := e.Config()
		next := *old
		fn(&next)
		if e.current.CompareAndSwap(old, &next) {
			return
		}
	}
}

// Measure learns what the server takes. Another, or the same one after a start with another
// configuration, may take less than what was gathered for it: a record too large for it is tried
// for ever.
func (e *Env) Measure() {
	limit := max(int(e.Conn.MaxPayload())-HeaderBudget, HeaderBudget)
	e.RecordLimit.Store(int64(limit))
	e.change(func(c *execution.Config) { c.Details = min(e.Options.Execution.Details, limit/2) })
}

// BodyLimit is the largest body that is published.
func (e *Env) BodyLimit() int { return int(e.RecordLimit.Load()) }

// Largest is the largest message that the server takes.
func (e *Env) Largest() int { return e.BodyLimit() + HeaderBudget }

// MaxPayload is that of the server.
func (e *Env) MaxPayload() int64 { return int64(e.Largest()) }

// MessageLimit is the largest message that is taken into a history: in a decision task it may stand
// in base64, which takes a third more.
func (e *Env) MessageLimit() int { return payloads.MessageLimit(e.MaxPayload()) }

// PartitionOf is the partition that a workflow id belongs to.
func (e *Env) PartitionOf(wid string) int { return subject.Partition(wid, e.Options.Partitions) }

// HeaderBudget is what a message may need besides its body: headers, and the record around the
// payloads.
const HeaderBudget = 64 << 10

// BeginTypes reads the registered types and follows them until the broker ends.
func (e *Env) BeginTypes(ctx context.Context) (*types.Table, error) {
	t, follow, err := types.Open(ctx, types.Options{
		Conn: e.Conn, Reads: e.Reads, Bucket: e.NS.BucketTypes(), Require: e.Options.RequireTypes,
		Log: e.Options.Logger, Now: e.Now, BodyLimit: e.BodyLimit, Publish: e.setTypes,
	})
	if err != nil {
		return nil, err
	}
	e.Work.Go(func() { follow(e.Background) })
	return t, nil
}

// RefuseType says why a workflow of the request's type may not be started, or nil.
func (e *Env) RefuseType(q *schemas.StartRequest) *schemas.Error {
	return e.Types.Refusal(e.Config().Types, q)
}
