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
	"github.com/droverhq/drover/broker/clock"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/schemas"
)

// Broker serves a namespace: it takes its share of the partitions and answers the API. Start more
// of them to spread the work; they find each other through the claims.
type Broker struct {
	*env
	dial    Dialer
	api     *natsconn.Conn
	holders sync.WaitGroup // of claims, and what they need
	started chan struct{}  // see Started
	uploads *payloads.Uploads

	lost   atomic.Pointer[error] // why there is no quorum; nil while there is one
	asking pendingRequests

	mu    sync.Mutex
	parts map[int]*partition // owned now
}

// maxReaders bounds how many reads of histories a broker has under way, maxWriters how many short
// writes that are not acknowledged on the loop.
const maxReaders, maxWriters = 64, 64

// headStart is how long a broker that is not the preferred owner of a free partition lets the
// preferred one go first.
const headStart = 100 * time.Millisecond

// Dialer opens a connection; name is shown by the server for it.
type Dialer func(ctx context.Context, name string) (*natsconn.Conn, error)

// New returns a broker. It opens three connections with dial while it runs: one to write; one to
// read histories, since a read keeps its connection busy and commits must not wait for it; one for
// the API, which ends with it.
func New(dial Dialer, o Options) (*Broker, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	b := &Broker{
		env: &env{
			o: o, ns: subject.Namespace(o.Namespace), doubt: make(chan struct{}, 1),
			readers: make(lane, maxReaders), writers: make(lane, maxWriters),
			replays: make(chan struct{}, mostReplays),
		},
		dial: dial, started: make(chan struct{}), parts: make(map[int]*partition),
	}
	b.current.Store(&b.o.Execution)
	return b, nil
}

// config is what the core is told of the namespace. It changes as a whole, when the registered
// types do.
func (b *env) config() *execution.Config { return b.current.Load() }

// setTypes changes the table of registered types.
func (b *env) setTypes(t *execution.Types) {
	b.change(func(c *execution.Config) { c.Types = t })
}

// measure learns what the server takes. Another, or the same one after a start with another
// configuration, may take less than what was gathered for it: a record too large for it is tried
// for ever.
func (b *env) measure() {
	limit := max(int(b.conn.MaxPayload())-headerBudget, headerBudget)
	b.recordLimit.Store(int64(limit))
	b.change(func(c *execution.Config) { c.Details = min(b.o.Execution.Details, limit/2) })
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

// Run serves until ctx is done; then it gives its partitions back and returns nil. It returns an
// error if it cannot begin, and stops by itself with [natsconn.ErrClosed] if one of its connections
// is closed. A broker runs once.
func (b *Broker) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	b.ctx = work
	closeAll, err := b.connect(ctx)
	defer closeAll()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	close(b.started)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	for _, c := range []*natsconn.Conn{b.conn, b.reads, b.api} {
		// a broker that serves nobody any more would keep its claims, and look healthy
		defer c.OnClose(func() { cut(natsconn.ErrClosed) })()
	}
	b.o.Logger.WithField("namespace", b.o.Namespace).
		WithField("partitions", b.o.Partitions).
		WithField("node", b.o.Node).
		Info("broker runs")
	if _,
		err := natsconn.Retry(ctx, b.o.Logger,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, b.askTime(ctx) }); err != nil &&
		ctx.Err() == nil {
		return fmt.Errorf("broker: %w", err)
	}
	b.share = b.o.Claims.Share(claims.RoleBroker)
	stopped := b.ownPartitions(ctx)() // the API answers until the last partition is given back
	cause := context.Cause(ctx)
	b.finish(stopped)
	b.api.Close()
	b.uploads.Close()
	cancel()
	<-b.answering.idle()
	b.wg.Wait()
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
	}{{"commits", &b.conn}, {"reads", &b.reads}, {"api", &b.api}} {
		if *c.conn, err = b.dial(ctx, b.o.Node+" "+c.name); err != nil {
			return closeAll, err
		}
		open = append(open, *c.conn)
	}
	if most := b.conn.MaxPayload(); most < 2*headerBudget {
		return closeAll, fmt.Errorf(
			"the server's max_payload is %d bytes; want at least %d",
			most,
			2*headerBudget,
		)
	}
	b.measure()
	b.runs = &runs.Reader{
		Conn: b.reads, Namespace: b.ns, Partitions: b.o.Partitions, BodyLimit: b.bodyLimit, Log: b.o.Logger,
	}
	b.conn.OnReconnect(b.measure)
	if b.relay, err = b.newRelay(); err != nil {
		return closeAll, err
	}
	if err := b.openPayloads(); err != nil {
		return closeAll, err
	}
	if b.types, err = b.beginTypes(ctx); err != nil {
		return closeAll, err
	}
	if b.locks, err = b.beginLocks(ctx); err != nil {
		return closeAll, err
	}
	return closeAll, b.serveAPI()
}

// ownPartition claims a partition again and again, and owns it while the claim lasts.
func (b *Broker) ownPartition(ctx context.Context, n int) {
	key := fmt.Sprintf("partition.%d", n)
	prefer := func() bool { return b.share.Mine(n) }
	err := b.o.Claims.Hold(
		ctx,
		key,
		claims.HoldOptions{Prefer: prefer, Backoff: headStart, Conn: b.conn},
		func(ctx context.Context, l *claims.Lease) error {
			gone := 0      // terms in a row that missed a stream, or all of JetStream
			isOff := false // that was told of
			for l.Valid() && ctx.Err() == nil {
				err := newPartition(b.env, n, l).run(ctx, b.own)
				switch {
				case err == nil || ctx.Err() != nil || errors.Is(err, errElsewhere):
					return nil
				case errors.Is(err, ErrNewerFence):
					b.o.Logger.WithError(err).
						WithField("partition", n).
						Warn("another broker owns the partition")
					return err
				case !l.Valid(): // that the claim is lost was told of
					return nil
				case errors.Is(err, errRefused): // which was told of
					isOff = false
				case errors.Is(err, natsconn.ErrSwitchedOff):
					if !isOff {
						isOff = true
						b.o.Logger.WithError(err).
							WithField("partition", n).
							Error("the partition cannot be served without JetStream: " + natsconn.SwitchedOffHint)
					}
				default:
					b.o.Logger.WithError(err).
						WithField("partition", n).
						Error("the partition cannot be served; trying again")
				}
				again := 20*time.Millisecond + rand.N(80*time.Millisecond)
				if errors.Is(err, natsconn.ErrFull) || errors.Is(err, natsconn.ErrManyConsumers) ||
					errors.Is(err, natsconn.ErrPermission) ||
					unreadable(err) {
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
		},
	)
	if err != nil && ctx.Err() == nil {
		b.o.Logger.WithError(err).WithField("partition", n).Error("the partition is given up")
	}
}

// own lets requests in this process reach a partition, until disown is called.
func (b *Broker) own(p *partition) (disown func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts[p.n] = p
	b.locks.Own(p.n, p.keys.locks)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.parts[p.n] == p {
			delete(b.parts, p.n)
		}
		b.locks.Disown(p.n, p.keys.locks)
	}
}

// part is the partition, nil if its owner is not here.
func (b *Broker) part(n int) *partition {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.parts[n]
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
func (b *Broker) Fence(ctx context.Context, partition int, claim uint64) error {
	_, err := Fence(ctx, b.conn, b.ns, partition, claim, b.o.Node)
	if errors.Is(err, ErrNewerFence) {
		return nil
	}
	return err
}

// clockEvery is how often the server is asked for its time. Nothing else is learned from: the
// leaders of other streams, which stamp what is read, may be servers with another clock, and the
// estimate would go back and forth by the difference, with all that is due.
const clockEvery = 30 * time.Second

// exchanges are asked for one after the other: deadlines are late by what the fastest takes.
const exchanges = 3

func (b *env) watchClock(ctx context.Context) {
	var wall clock.Wall
	for wall.Wait(ctx, clockEvery, b.doubt) == nil {
		if err := b.askTime(ctx); err != nil && ctx.Err() == nil {
			b.o.Logger.WithError(err).Debug("the server does not tell its time now")
		}
	}
}

// doubtClock has the server asked at once: the stream that is asked may have a new leader, with
// another clock, of which the timer worker knows and we do not, or the other way around.
func (b *env) doubtClock() {
	select {
	case b.doubt <- struct{}{}:
	default:
	}
}

// askTime takes a fresh reading of the clock that stamps the records.
func (b *env) askTime(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for range exchanges {
		asked := time.Now() // of several tries the first: the bound is then too high, and still one
		at, err := b.reads.StreamTime(ctx, b.ns.StreamHistory(0))
		if err != nil {
			return fmt.Errorf("stream %s: %w", b.ns.StreamHistory(0), err)
		}
		b.clock.ObserveExchange(asked, at, time.Now())
	}
	return nil
}

func (b *env) now() schemas.Timestamp { return schemas.At(b.clock.Now(time.Now())) }

// latest is a time at or after that of the server: no record that is acknowledged by now has a
// later stamp.
func (b *env) latest() schemas.Timestamp {
	local := time.Now()
	return max(schemas.At(b.clock.Now(local)).Add(rebaseMargin), schemas.At(b.clock.Latest(local)))
}

func (b *env) partitionOf(wid string) int { return subject.Partition(wid, b.o.Partitions) }
