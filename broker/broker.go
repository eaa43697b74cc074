package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/handover"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/internal/sleep"
)

// Broker serves a namespace: it takes its share of the partitions and answers the API. Start more
// of them to spread the work; they find each other through the claims.
type Broker struct {
	*env.Env
	dial    Dialer
	api     *natsconn.Conn
	holders sync.WaitGroup // of claims, and what they need
	started chan struct{}  // see Started
	uploads *payloads.Uploads

	lost   atomic.Pointer[error] // why there is no quorum; nil while there is one
	asking pendingRequests

	mu    sync.Mutex
	parts map[int]*partition.Partition // owned now
}

// Options configure a broker. The zero value of every field is its default.
type Options = env.Options

// Change is a run that has changed, and the last of its records that say so.
type Change = env.Change

// headStart is how long a broker that is not the preferred owner of a free partition lets the
// preferred one go first.
const headStart = 100 * time.Millisecond

// fullPause is how long a partition whose history takes nothing more waits before it is tried
// again. maxDoublings of the shortest pause are more.
const fullPause, maxDoublings = 2 * time.Second, 7

// Dialer opens a connection; name is shown by the server for it.
type Dialer func(ctx context.Context, name string) (*natsconn.Conn, error)

// New returns a broker. It opens three connections with dial while it runs: one to write; one to
// read histories, since a read keeps its connection busy and commits must not wait for it; one for
// the API, which ends with it.
func New(dial Dialer, o Options) (*Broker, error) {
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		Env: env.New(o), dial: dial,
		started: make(chan struct{}), parts: make(map[int]*partition.Partition),
	}
	return b, nil
}

// Run serves until ctx is done; then it gives its partitions back and returns nil. It returns an
// error if it cannot begin, and stops by itself with [natsconn.ErrClosed] if one of its connections
// is closed. A broker runs once.
func (b *Broker) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	b.Background = work
	closeAll, err := b.connect(ctx)
	defer closeAll()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	close(b.started)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	for _, c := range []*natsconn.Conn{b.Conn, b.Reads, b.api} {
		// a broker that serves nobody any more would keep its claims, and look healthy
		defer c.OnClose(func() { cut(natsconn.ErrClosed) })()
	}
	b.Options.Logger.WithField("namespace", b.Options.Namespace).WithField("partitions",
		b.Options.Partitions).WithField("node", b.Options.Node).Info("broker runs")
	if _, err := natsconn.Retry(ctx, b.Options.Logger, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.AskTime(ctx)
	}); err != nil && ctx.Err() == nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.Share = b.Options.Claims.Share(claims.RoleBroker)
	stopped := b.ownPartitions(ctx)() // the API answers until the last partition is given back
	cause := context.Cause(ctx)
	b.finish(stopped)
	b.api.Close()
	b.uploads.Close()
	cancel()
	<-b.Answering.Idle()
	b.Work.Wait()
	if errors.Is(cause, natsconn.ErrClosed) {
		return fmt.Errorf("broker: connection: %w", cause)
	}
	return nil
}

// connect opens the connections and registers the API. What it returns closes them, and is never
// nil.
func (b *Broker) connect(ctx context.Context) (closeAll func(), err error) {
	var open []*natsconn.Conn
	closeAll = func() {
		for _, c := range open {
			c.Close()
		}
	}
	for _, c := range []struct {
		name string
		conn **natsconn.Conn
	}{{"commits", &b.Conn}, {"reads", &b.Reads}, {"api", &b.api}} {
		if *c.conn, err = b.dial(ctx, b.Options.Node+" "+c.name); err != nil {
			return closeAll, err
		}
		open = append(open, *c.conn)
	}
	if most := b.Conn.MaxPayload(); most < 2*env.HeaderBudget {
		return closeAll, fmt.Errorf("the server's max_payload is %d bytes; want at least %d",
			most, 2*env.HeaderBudget)
	}
	b.Measure()
	b.Histories = &runs.Reader{
		Conn: b.Reads, Namespace: b.NS, Partitions: b.Options.Partitions, BodyLimit: b.BodyLimit,
		Log: b.Options.Logger,
	}
	b.Conn.OnReconnect(b.Measure)
	if b.Relay, err = b.NewRelay(); err != nil {
		return closeAll, err
	}
	if err := b.openPayloads(); err != nil {
		return closeAll, err
	}
	if b.Types, err = b.BeginTypes(ctx); err != nil {
		return closeAll, err
	}
	if b.Locks, err = b.BeginLocks(ctx); err != nil {
		return closeAll, err
	}
	return closeAll, b.serveAPI()
}

// ownPartition claims a partition again and again, and owns it while the claim lasts.
func (b *Broker) ownPartition(ctx context.Context, n int) {
	key := fmt.Sprintf("partition.%d", n)
	prefer := func() bool { return b.Share.Mine(n) }
	err := b.Options.Claims.Hold(ctx, key,
		claims.HoldOptions{Prefer: prefer, Backoff: headStart, Conn: b.Conn},
		func(ctx context.Context, l *claims.Lease) error {
			gone := 0      // terms in a row that missed a stream, or all of JetStream
			isOff := false // that was told of
			for l.Valid() && ctx.Err() == nil {
				err := partition.New(b.Env, n, l).Run(ctx, b.own)
				switch {
				case err == nil || ctx.Err() != nil || errors.Is(err, partition.ErrElsewhere):
					return nil
				case errors.Is(err, env.ErrNewerFence):
					b.Options.Logger.WithError(err).WithField("partition", n).
						Warn("another broker owns the partition")
					return err
				case !l.Valid(): // that the claim is lost was told of
					return nil
				case errors.Is(err, partition.ErrRefused): // which was told of
					isOff = false
				case errors.Is(err, natsconn.ErrSwitchedOff):
					if !isOff {
						isOff = true
						b.Options.Logger.WithError(err).WithField("partition", n).Error(
							"the partition cannot be served without JetStream: " +
								natsconn.SwitchedOffHint)
					}
				default:
					b.Options.Logger.WithError(err).WithField("partition", n).
						Error("the partition cannot be served; trying again")
				}
				again := 20*time.Millisecond + rand.N(80*time.Millisecond)
				if errors.Is(err, natsconn.ErrFull) || errors.Is(err, natsconn.ErrManyConsumers) ||
					errors.Is(err, natsconn.ErrPermission) || env.Undecodable(err) {
					again = fullPause // somebody must change something first
				}
				if errors.Is(err, natsconn.ErrNoStream) || errors.Is(err, natsconn.ErrSwitchedOff) {
					// a cluster that elects looks like that too, but not for long; each try writes a
					// fence
					again = min(again<<gone, fullPause)
					gone = min(gone+1, maxDoublings)
				} else {
					gone = 0
				}
				if err := sleep.For(ctx, again); err != nil {
					return nil
				}
			}
			return nil
		})
	if err != nil && ctx.Err() == nil {
		b.Options.Logger.WithError(err).WithField("partition", n).Error("the partition is given up")
	}
}

// own lets requests in this process reach a partition, until disown is called.
func (b *Broker) own(p *partition.Partition) (disown func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[p.Number()] = p
	p.OwnLocks()
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.parts[p.Number()] == p {
			delete(b.parts, p.Number())
		}
		p.DisownLocks()
	}
}

// part is the partition, nil if its owner is not here.
func (b *Broker) part(n int) *partition.Partition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[n]
}

// Started is closed when the broker has its connections and listens for requests: a broker that
// cannot begin ends before.
func (b *Broker) Started() <-chan struct{} { return b.started }

// Owned returns the partitions that this broker serves now, in no order.
func (b *Broker) Owned() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	owned := make([]int, 0, len(b.parts))
	for n := range b.parts {
		owned = append(owned, n)
	}
	return owned
}

// Fence writes a fence into a partition's history in the name of a claim that has expired, so that
// nothing its holder may still send is stored. The health master calls it before it deletes the
// claim (P-16).
func (b *Broker) Fence(ctx context.Context, n int, claim uint64) error {
	_, err := handover.Fence(ctx, b.Conn, b.NS, n, claim, b.Options.Node)
	if errors.Is(err, env.ErrNewerFence) {
		return nil
	}
	return err
}
