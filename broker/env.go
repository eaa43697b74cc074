package broker

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/broker/types"
	"github.com/droverhq/drover/schemas"
)

// env is what all partitions of a broker share: its options, its connections, its clock, what is
// known of the server, and the lanes that bound how much is under way. Everything in it may be used
// by any goroutine.
type env struct {
	o     Options
	ns    subject.Namespace
	conn  *natsconn.Conn // to write
	reads *natsconn.Conn
	clock clock.Server
	doubt chan struct{} // holds a value when a timer worker has another clock
	share *claims.Share

	recordLimit atomic.Int64 // the largest body that is published; see measure
	current     atomic.Pointer[execution.Config]
	types       *types.Table // set before the API serves
	locks       *keyed.Table // set before the API serves

	ctx     context.Context // of Run; for reads that outlive a term
	wg      sync.WaitGroup
	passing sync.WaitGroup // partitions that are given away and still pass on answers of deciders
	// answering are requests that are read for.
	answering inFlight
	// scans gives turns to those that read much.
	scans runs.Scans
	// runs reads the histories; set before the API serves.
	runs    *runs.Reader
	readers lane // of histories
	writers lane // short writes of owners: see writeAsync
	looks   listLooks
	// replays bounds those that are being prepared: a decider may take its time over each.
	replays chan struct{}
	relay   *relay
	store   *payloads.Store
	storing atomic.Int64 // bytes of starts that are being put into the store
	// promised are the bytes of uploads that are under way; set before the API serves.
	promised    func() int64
	serverQuota atomic.Pointer[quota] // how full the NATS server is; nil if it is not known
}

// config is what the core is told of the namespace. It changes as a whole, when the registered
// types do.
func (b *env) config() *execution.Config { return b.current.Load() }

// setTypes changes the table of registered types.
func (b *env) setTypes(t *execution.Types) {
	b.change(func(c *execution.Config) { c.Types = t })
}

func (b *env) change(fn func(*execution.Config)) {
	for {
		old := b.config()
		next := *old
		fn(&next)
		if b.current.CompareAndSwap(old, &next) {
			return
		}
	}
}

// measure learns what the server takes. Another, or the same one after a start with another
// configuration, may take less than what was gathered for it: a record too large for it is tried
// for ever.
func (b *env) measure() {
	limit := max(int(b.conn.MaxPayload())-headerBudget, headerBudget)
	b.recordLimit.Store(int64(limit))
	b.change(func(c *execution.Config) { c.Details = min(b.o.Execution.Details, limit/2) })
}

// bodyLimit is the largest body that is published.
func (b *env) bodyLimit() int { return int(b.recordLimit.Load()) }

// largest is the largest message that the server takes.
func (b *env) largest() int { return b.bodyLimit() + headerBudget }

// maxPayload is that of the server.
func (b *env) maxPayload() int64 { return int64(b.largest()) }

// messageLimit is the largest message that is taken into a history: in a decision task it may stand
// in base64, which takes a third more.
func (b *env) messageLimit() int { return payloads.MessageLimit(b.maxPayload()) }

func (b *env) partitionOf(wid string) int { return subject.Partition(wid, b.o.Partitions) }

// headerBudget is what a message may need besides its body: headers, and the record around the
// payloads.
const headerBudget = 64 << 10

// beginTypes reads the registered types and follows them until the broker ends.
func (b *env) beginTypes(ctx context.Context) (*types.Table, error) {
	t, follow, err := types.Open(ctx, types.Options{
		Conn: b.conn, Reads: b.reads, Bucket: b.ns.BucketTypes(), Require: b.o.RequireTypes,
		Log: b.o.Logger, Now: b.now, BodyLimit: b.bodyLimit, Publish: b.setTypes,
	})
	if err != nil {
		return nil, err
	}
	b.wg.Go(func() { follow(b.ctx) })
	return t, nil
}

// refuseType says why a workflow of the request's type may not be started, or nil.
func (b *env) refuseType(q *schemas.StartRequest) *schemas.Error {
	return b.types.Refusal(b.config().Types, q)
}
