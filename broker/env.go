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
