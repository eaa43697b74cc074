package natsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/droverhq/drover/internal/sleep"
)

const (
	heartbeat      = 2 * time.Second
	missedBeats    = 5 * time.Second // silence after which a consumer counts as lost
	inactiveAfter  = 30 * time.Second
	firstRetryWait = 50 * time.Millisecond
	maxRetryWait   = 2 * time.Second
	// regressPatience is how long a stream must look shorter than what was read before the reader
	// believes it: a new leader may answer before it has applied everything.
	regressPatience = 5 * time.Second
)

// ReadOptions says what of a stream to read.
type ReadOptions struct {
	// FilterSubjects are the subjects to read, wildcards allowed. Defaults to all.
	FilterSubjects []string
	// StartSeq is the first sequence wanted. Below the stream's first, reading begins at the first.
	// Defaults to 1.
	StartSeq uint64
	// EndSeq is the last sequence wanted. Defaults to the stream's end. It is for [Conn.Scan] only,
	// and not together with LastPerSubject.
	EndSeq uint64
	// LastPerSubject begins with the last message of each subject, then reads on. Not together with
	// StartSeq.
	LastPerSubject bool
	// HeadersOnly leaves out the bodies.
	HeadersOnly bool
	// BytesPerSecond is how much the server sends at most, after as much as the largest message
	// that it takes. Defaults to 0, no limit.
	BytesPerSecond int64
}

const (
	// Leisurely is the [ReadOptions.BytesPerSecond] of those whom nobody waits for. A pause of the
	// reader's now and then would not do: the server sends megabytes ahead, which is all of many
	// streams.
	Leisurely = 2 << 20
	// LeisurelyHeaders is that of those who read the headers of histories. It must be more than is
	// written in a second for long.
	LeisurelyHeaders = 4 * Leisurely
)

func (o ReadOptions) validate() error {
	if o.LastPerSubject && o.StartSeq > 0 {
		return fmt.Errorf("%w: ReadOptions: StartSeq and LastPerSubject exclude each other",
			ErrInvalid)
	}
	if o.EndSeq > 0 && o.LastPerSubject {
		return fmt.Errorf("%w: ReadOptions: EndSeq and LastPerSubject exclude each other",
			ErrInvalid)
	}
	if o.BytesPerSecond < 0 {
		return fmt.Errorf("%w: ReadOptions.BytesPerSecond is %d, want 0 for no limit, or more",
			ErrInvalid, o.BytesPerSecond)
	}
	if slices.Contains(o.FilterSubjects, "") {
		return fmt.Errorf("%w: ReadOptions.FilterSubjects holds an empty subject", ErrInvalid)
	}
	return nil
}

// Reader follows a stream in order, without gap and without repeat, through lost connections,
// restarts of servers and changes of leaders. It acknowledges nothing and leaves no trace in the
// stream.
//
// It stops by Close, by the end of the connection, or because the stream regressed; Done and Err
// tell. Whoever follows a stream must watch Done: a reader that stopped reads no more.
//
// It is a push consumer with flow control, in the server's memory. The client library's ordered
// consumer was left: it cannot tell a stream that was made anew from one that goes on, and can
// repeat messages when its replica lags.
type Reader struct {
	conn   *Conn
	stream string
	opts   ReadOptions
	fn     func(s Stored, pending uint64)

	kick   chan struct{} // asks the keeper for a new consumer
	done   chan struct{} // closed when fn will not be called again
	caught chan struct{} // closed when everything stored at the start was read
	cancel context.CancelFunc
	unhook func()

	closed atomic.Bool

	// held while fn runs: one call at a time, across consumers; guards what follows
	turn     chanMutex
	seen     time.Time // when the last message or heartbeat was handled
	serial   uint64    // counts consumers; messages of earlier ones are ignored
	sub      *nats.Subscription
	name     string // of the consumer
	sequence uint64 // last delivery sequence of this consumer
	last     uint64 // last stream sequence given to fn
	lastTime time.Time
	reported bool // caught is closed
	err      error
}

// Read follows a stream. fn is called for one message at a time, in stream order; it may block,
// which slows the server down, and it must not wait for the reader's Done. ctx bounds the first
// request only. A stream that does not exist is [ErrNoStream]; a StartSeq more than one above the
// stream's end is [ErrStreamRegressed].
func (c *Conn) Read(
	ctx context.Context, stream string, o ReadOptions, fn func(Stored),
) (*Reader, error) {
	if o.EndSeq > 0 {
		return nil, fmt.Errorf(
			"%w: ReadOptions.EndSeq is %d, but a reader has no end: use Scan, or leave it out",
			ErrInvalid, o.EndSeq)
	}
	r, err := c.newReader(ctx, stream, o, func(s Stored, _ uint64) { fn(s) })
	if err != nil {
		return nil, err
	}
	if o.StartSeq > 1 {
		r.last = o.StartSeq - 1
		if err := r.checkRegressed(ctx); err != nil {
			return nil, err
		}
	}
	return r, r.begin(ctx)
}

func (c *Conn) newReader(
	ctx context.Context, stream string, o ReadOptions, fn func(Stored, uint64),
) (*Reader, error) {
	if err := errors.Join(checkName("stream", stream), o.validate(), ctx.Err()); err != nil {
		return nil, err
	}
	r := &Reader{
		conn: c, stream: stream, opts: o, fn: fn, turn: make(chanMutex, 1),
		kick: make(chan struct{}, 1), done: make(chan struct{}), caught: make(chan struct{}),
	}
	if o.StartSeq > 0 {
		r.last = o.StartSeq - 1
	}
	return r, nil
}

// begin makes the first consumer and starts the keeper.
func (r *Reader) begin(ctx context.Context) error {
	r.unhook = r.conn.OnReconnect(r.restart)
	if err := r.open(ctx); err != nil {
		r.unhook()
		return fmt.Errorf("read %w", err)
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go r.keep(ctx)
	if err := r.conn.adopt(r); err != nil {
		r.Close()
		return fmt.Errorf("read stream %s: %w", r.stream, err)
	}
	return nil
}

// Close stops the reader. It does not wait for a call of fn that runs; Done does.
func (r *Reader) Close() {
	r.closed.Store(true)
	r.cancel()
}

// Done is closed when the reader has stopped and fn will not be called again.
func (r *Reader) Done() <-chan struct{} { return r.done }

// Err says why the reader stopped: nil while it runs and after Close, [ErrStreamRegressed]
// otherwise.
func (r *Reader) Err() error {
	select {
	case <-r.done:
		return r.err
	default:
		return nil
	}
}

// CaughtUp is closed when the reader has once given fn everything that its replica held. It is a
// hint for caches; [Conn.Scan] is the way to read to a proven end.
func (r *Reader) CaughtUp() <-chan struct{} { return r.caught }

// restart asks for a new consumer.
func (r *Reader) restart() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// keep replaces the consumer when it is lost, until the reader ends.
func (r *Reader) keep(ctx context.Context) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-r.kick:
			r.err = r.replace(ctx)
		case <-tick.C:
			if r.silent() {
				r.conn.log.WithField("stream", r.stream).
					Warn("reader heard nothing from its consumer, making a new one")
				r.err = r.replace(ctx)
			}
		}
		if r.err != nil {
			r.conn.log.WithFields(map[string]any{"stream": r.stream, "err": r.err}).
				Error("reader stopped")
			break
		}
	}
	r.Close()
	r.unhook()
	r.conn.disown(r)
	r.turn.lock() // waits for fn
	r.serial++
	r.drop()
	r.turn.unlock()
	close(r.done)
}

// silent says that neither messages nor heartbeats come, although nothing waits to be handled. A
// slow fn is not silence: what came meanwhile waits in the subscription.
func (r *Reader) silent() bool {
	if !r.conn.Connected() || !r.turn.tryLock() {
		return false
	}
	defer r.turn.unlock()
	if n, _, err := r.sub.Pending(); err == nil && n > 0 {
		return false
	}
	return time.Since(r.seen) > missedBeats
}

// replace makes a new consumer after the last message that fn got. It returns an error only if the
// reader must stop.
func (r *Reader) replace(ctx context.Context) error {
	r.turn.lock()
	r.serial++
	r.drop()
	r.turn.unlock()
	for wait := firstRetryWait; ctx.Err() == nil; wait = min(2*wait, maxRetryWait) {
		err := r.checkRegressed(ctx)
		if errors.Is(err, ErrStreamRegressed) {
			return err
		}
		if err == nil {
			err = r.open(ctx)
		}
		if err == nil || errors.Is(err, ErrClosed) {
			return nil
		}
		r.conn.log.WithFields(map[string]any{"stream": r.stream, "err": err}).
			Debug("reader cannot go on yet, trying again")
		sleep.For(ctx, wait)
	}
	return nil
}

// drop forgets the present consumer. The server removes it without being asked when nobody listens
// any more; asking frees it sooner. The caller holds the turn.
func (r *Reader) drop() {
	if r.sub == nil {
		return
	}
	// it fails only when the connection is closed, and with it the subscription
	_ = r.sub.Unsubscribe()
	_ = r.conn.nc.Publish(r.conn.api+".CONSUMER.DELETE."+r.stream+"."+r.name, nil)
	r.sub = nil
}

// checkRegressed compares the stream with what was read from it.
func (r *Reader) checkRegressed(ctx context.Context) error {
	r.turn.lock()
	last, at := r.last, r.lastTime
	r.turn.unlock()
	return r.conn.CheckRegressed(ctx, r.stream, last, at)
}

// CheckRegressed compares a stream with what was read of it: up to a message that was stored at a
// time, the zero time if that is not known. It is [ErrStreamRegressed] if the stream has lost its
// end since, whether or not it has another one. It takes up to 5 s to believe that.
func (c *Conn) CheckRegressed(
	ctx context.Context, stream string, last uint64, at time.Time,
) error {
	if last == 0 {
		return nil
	}
	for start := time.Now(); ; {
		end, err := c.StreamLastSeq(ctx, stream)
		if err != nil {
			return err
		}
		if end >= last {
			break
		}
		if time.Since(start) >= regressPatience {
			return fmt.Errorf("stream %s: %w: it ends at %d, %d was read",
				stream, ErrStreamRegressed, end, last)
		}
		if sleep.For(ctx, retryWait) != nil {
			return ctx.Err()
		}
	}
	if at.IsZero() {
		return nil
	}
	witness, err := c.GetSeq(ctx, stream, last)
	if errors.Is(err, ErrNotFound) {
		// purged or expired since, or another one had its number, and is gone as well
		witness, err = c.newest(ctx, stream, last)
	}
	switch {
	case err != nil:
		return err
	case witness == nil: // nothing is left of what a new reader would have to read again
		return nil
	case witness.Time.After(at) || witness.Seq == last && !witness.Time.Equal(at):
		return fmt.Errorf("stream %s: %w: message %d was stored at %v or before, now it is from %v",
			stream, ErrStreamRegressed, witness.Seq, at, witness.Time)
	}
	return nil
}

// newest returns the last message up to a sequence, nil if there is none. It takes a question for
// each halving.
func (c *Conn) newest(
	ctx context.Context, stream string, upTo uint64,
) (found *Stored, err error) {
	for from, none := uint64(1), upTo; from < none; { // nothing is there from none on
		mid := from + (none-from)/2
		if found == nil {
			mid = from // mostly there is one, or nothing at all
		}
		switch m, err := c.NextBySubject(ctx, stream, ">", mid); {
		case err != nil && !errors.Is(err, ErrNotFound):
			return nil, err
		case err != nil || m.Seq >= none:
			none = mid
		default:
			found, from = m, m.Seq+1
		}
	}
	return found, nil
}

// receive handles one message of the consumer with the given serial.
func (r *Reader) receive(serial uint64, m *nats.Msg) {
	r.turn.lock()
	defer r.turn.unlock()
	if serial != r.serial || r.closed.Load() {
		return
	}
	defer func() { r.seen = time.Now() }()
	d, err := parseDelivery(m.Reply)
	if err != nil {
		r.control(m)
		return
	}
	if d.sequence != r.sequence+1 {
		r.lost()
		return
	}
	r.sequence = d.sequence
	if d.stream > r.last { // a lagging replica begins before the wanted sequence
		r.last, r.lastTime = d.stream, d.time
		s := Stored{Subject: m.Subject, Seq: d.stream, Time: d.time, Data: m.Data}
		if len(m.Header) > 0 {
			s.Header = m.Header
		}
		r.fn(s, d.pending)
	}
	if d.pending == 0 {
		r.reachedEnd()
	}
}

// control answers flow control and checks heartbeats. They come in order after the messages they
// speak of.
func (r *Reader) control(m *nats.Msg) {
	switch stalled := m.Header.Get(headerConsumerStalled); {
	case m.Reply != "":
		// unsent: the server stalls and says so in its heartbeats
		_ = r.conn.nc.Publish(m.Reply, nil)
	case stalled != "":
		_ = r.conn.nc.Publish(stalled, nil)
	}
	if seq := m.Header.Get(headerLastConsumer); seq != "" && seq != fmt.Sprint(r.sequence) {
		r.lost()
	}
}

// lost ignores the rest of this consumer and asks for a new one. The caller holds the turn.
func (r *Reader) lost() {
	r.serial++
	r.restart()
}

// reachedEnd reports once that nothing is left to read. The caller holds the turn.
func (r *Reader) reachedEnd() {
	if !r.reported {
		r.reported = true
		close(r.caught)
	}
}
