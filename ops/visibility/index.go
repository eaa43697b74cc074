package visibility

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/ops/index"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/ops/spans"
)

const (
	// maxChanges bounds what was told and not heard yet, some 300 bytes each.
	maxChanges = 32 << 10
	// fullSpeed is how many bytes of headers of a partition are read in a second at most, and
	// buildAtOnce how many partitions are read from their beginnings at a time.
	fullSpeed   = 32 << 20
	buildAtOnce = 2
	// answering is how many requests are worked on at a time: each may keep a core busy.
	answering = 4
)

// Index is the index of a namespace on this node.
type Index struct {
	o        Options
	queue    *spans.Queue
	building chan struct{} // turns
	parts    []*part

	started chan struct{} // closed when the verbs are answered

	// What follows is of Run.
	conn     *natsconn.Conn
	reasons  *runs.Reader
	follower *spans.Follower
}

// New checks the options. It asks nobody.
func New(o Options) (*Index, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	x := &Index{
		o: o, queue: spans.NewQueue(maxChanges), building: make(chan struct{}, buildAtOnce),
		parts: make([]*part, o.Partitions), started: make(chan struct{}),
	}
	for p := range x.parts {
		x.parts[p] = newPart(x, p)
	}
	return x, nil
}

// Changed takes what the owner of a partition in this process says of its records; see
// [broker.Options]. It does not block, and is safe for concurrent use.
func (x *Index) Changed(partition int, from, to uint64, changed []broker.Change) {
	x.queue.Add(partition, spans.Span{From: from, To: to, Changed: changed})
	select {
	case x.parts[partition].wake <- struct{}{}:
	default:
	}
}

// Run keeps the index and answers the verbs until ctx ends, and returns nil. It begins with nothing
// known. An index runs once.
func (x *Index) Run(ctx context.Context) error {
	conn, err := x.o.Dial(ctx)
	if err != nil {
		return fmt.Errorf("visibility: %w", err)
	}
	defer conn.Close()
	x.conn = conn
	x.reasons = &runs.Reader{
		Conn: conn, Namespace: x.o.Namespace, Partitions: x.o.Partitions, Log: x.o.Logger,
	}
	x.follower = &spans.Follower{
		Conn: conn, Namespace: x.o.Namespace, Queue: x.queue, Next: make([]uint64, x.o.Partitions),
		BytesPerSecond: fullSpeed,
		Told: func(_ context.Context, p int, c *broker.Change) error {
			x.parts[p].told(c)
			return nil
		},
		Read: func(ctx context.Context, p int, m natsconn.Stored) error {
			x.parts[p].take(ctx, m)
			return nil
		},
	}
	x.queue.Listen(true)
	defer x.queue.Listen(false)
	var following sync.WaitGroup
	defer following.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer conn.OnClose(func() { cancel(natsconn.ErrClosed) })()
	purged, err := x.hearPurged()
	if err != nil {
		return err
	}
	defer purged.Close() // it ends with the connection, too
	for _, t := range x.parts {
		t.anew()
		following.Go(func() { t.run(ctx) })
	}
	following.Go(func() { x.auditOn(ctx) })
	stop, err := service.Serve(ctx, service.Options{
		Conn: conn, Namespace: x.o.Namespace, Queue: queueGroup, AtOnce: answering,
		Logger: x.o.Logger,
	}, x.verbs())
	if err != nil {
		return err
	}
	defer stop()
	close(x.started)
	<-ctx.Done()
	if err := context.Cause(ctx); errors.Is(err, natsconn.ErrClosed) {
		return fmt.Errorf("visibility: connection: %w", err)
	}
	return nil
}

// stores are those of all partitions, as they are now.
func (x *Index) stores() []*index.Store {
	all := make([]*index.Store, len(x.parts))
	for p, t := range x.parts {
		all[p] = t.store.Load()
	}
	return all
}

// Stats are figures about an index.
type Stats struct {
	Rows  int
	Bytes int64 // about, of memory
	// Building is the part of the histories that was read, below 1 while the index is being built.
	Building float64
	// Gone is how many closed runs have left, since memory is bounded.
	Gone int64
}

// Started is closed when the index answers. What it has by then is little.
func (x *Index) Started() <-chan struct{} { return x.started }

// Stats returns the figures. It asks nobody.
func (x *Index) Stats() Stats {
	a := Stats{Building: x.built()}
	for _, s := range x.stores() {
		of := s.Stats()
		a.Rows, a.Gone, a.Bytes = a.Rows+of.Rows, a.Gone+of.Dropped, a.Bytes+s.Bytes()
	}
	return a
}

// built is the part of the histories that was read, 1 if nothing is built.
func (x *Index) built() float64 {
	var read, all float64
	whole := true
	for _, t := range x.parts {
		if t.built.Load() {
			n := float64(t.position.Load())
			read, all = read+n, all+n
			continue
		}
		whole = false
		goal := float64(t.goal.Load())
		read, all = read+min(float64(t.position.Load()), goal), all+goal
	}
	if whole {
		return 1
	}
	return min(max(read/max(all, 1), 0.01), 0.99)
}

// lag is how many records stand in the streams and did not count at these positions, which were
// noted before; -1 if the streams do not answer.
func (x *Index) lag(ctx context.Context, positions []uint64) int64 {
	ends, err := x.ends(ctx)
	if err != nil {
		return -1
	}
	var lag int64
	for p, end := range ends {
		lag += int64(end - min(end, positions[p]))
	}
	return lag
}

// askEnds bounds how long the streams may take to say where they end, and asksAtOnce is how many of
// them are asked at a time.
const askEnds, asksAtOnce = 2 * time.Second, 16

// ends are the last sequences of the streams.
func (x *Index) ends(ctx context.Context) ([]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, askEnds)
	defer cancel()
	ends := make([]uint64, len(x.parts))
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var asking sync.WaitGroup
	for range min(asksAtOnce, len(x.parts)) {
		asking.Go(func() {
			for p := int(next.Add(1)) - 1; p < len(ends); p = int(next.Add(1)) - 1 {
				end, err := x.conn.StreamLastSeq(ctx, x.parts[p].stream)
				if err != nil {
					failed.Store(&err)
					return
				}
				ends[p] = end
			}
		})
	}
	asking.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	return ends, nil
}

// positions are those of all partitions.
func (x *Index) positions() []uint64 {
	all := make([]uint64, len(x.parts))
	for p, t := range x.parts {
		all[p] = t.position.Load()
	}
	return all
}

// await returns when the rows have come to where the streams end at the call, or when that takes
// too long.
func (x *Index) await(ctx context.Context, limit time.Duration) {
	if limit <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ends, err := x.ends(ctx)
	if err != nil {
		return
	}
	tick := time.NewTicker(awaitEvery)
	defer tick.Stop()
	for p := 0; p < len(ends); {
		if t := x.parts[p]; t.position.Load() < ends[p] {
			t.want(ends[p])
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			continue
		}
		p++
	}
}

// awaitEvery is how often it is looked whether the rows have come far enough.
const awaitEvery = 10 * time.Millisecond
