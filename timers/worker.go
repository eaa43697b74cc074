package timers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/claims"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/compactmap"
	"github.com/droverhq/drover/internal/sleep"
)

// Worker rings alarms. It is made by [New].
type Worker struct {
	conn *natsconn.Conn
	opts Options
	ns   subject.Namespace
	log  logrus.FieldLogger
	now  func() time.Time // the local clock; tests set it wrong
	// mostAlarms is how many alarms of a partition are held; tests hold few.
	mostAlarms int
	purges     purgeScheduler
}

// Conn is what has a connection to NATS, such as a client of Drover.
type Conn interface{ NATS() *nats.Conn }

// New returns a worker that will speak through conn. Options that are wrong are reported by Run.
func New(conn Conn, opts *Options) *Worker {
	if opts == nil {
		opts = &Options{}
	}
	o := opts.withDefaults()
	return &Worker{
		conn: natsconn.Of(conn), opts: o, ns: subject.Namespace(o.Namespace), now: time.Now,
		mostAlarms: compactmap.MaxLen,
		log:        o.Logger.WithFields(logrus.Fields{"role": "timers", "node": o.Node}),
	}
}

// Run claims the alarms of every partition and rings those that it gets, until ctx ends. It then
// gives the claims back and returns nil. It returns [ErrInvalidOptions] if it did not begin, and
// stops by itself with [natsconn.ErrClosed] if its connection is closed.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.opts.validate(); err != nil {
		return err
	}
	if w.conn == nil {
		return fmt.Errorf("%w: New has a nil connection, or one that is closed: give it a client",
			ErrInvalidOptions)
	}
	w.log.Debugf("timer worker begins: %s", w.opts)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	// a worker that rings nothing any more would look healthy
	defer w.conn.OnClose(func() { cut(natsconn.ErrClosed) })()
	errs := make([]error, w.opts.Partitions)
	// Others are told first that this worker leaves, so that they take each partition at once when
	// it is given back.
	holding, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	share, left := w.opts.Claims.Share(claims.RoleTimers), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		share.Watch(holding, ctx, func() { close(left) }, func(err error) {
			w.log.WithField("err", err).Warn("the other timer workers cannot be seen now")
		})
	})
	ends := make([]termEnd, w.opts.Partitions)
	wg.Go(func() { yield(holding, w.opts.Claims.LookEvery(), share, ends) })
	for p := range w.opts.Partitions {
		prefer := func() bool { return share.Mine(p) }
		wg.Go(func() {
			errs[p] = w.opts.Claims.Hold(holding, claims.Alarms(p),
				claims.HoldOptions{Prefer: prefer, Conn: w.conn},
				func(ctx context.Context, l *claims.Lease) error {
					ctx, done := ends[p].begin(ctx)
					defer done()
					return newTerm(w, p, l).run(ctx)
				})
		})
	}
	<-ctx.Done()
	limit := time.NewTimer(lastWait)
	defer limit.Stop()
	select {
	case <-left:
	case <-limit.C:
	}
	release()
	wg.Wait()
	for p, err := range errs {
		if err != nil {
			return fmt.Errorf("timer worker: partition %d: %w", p, err)
		}
	}
	if cause := context.Cause(ctx); errors.Is(cause, natsconn.ErrClosed) {
		return fmt.Errorf("timer worker: connection: %w", cause)
	}
	return nil
}

// termEnd ends the term of a partition, if there is one, for the sake of a better worker.
type termEnd struct {
	mu       sync.Mutex
	end      context.CancelFunc // nil between terms
	unwanted int                // looks since another worker became the preferred one
}

func (e *termEnd) begin(ctx context.Context) (own context.Context, done func()) {
	own, cancel := context.WithCancel(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end, e.unwanted = cancel, 0
	return own, func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.end = nil
	}
}

// look ends the term at the third look at which another worker is preferred: one that has come may
// go again at once.
func (e *termEnd) look(wanted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.unwanted++; wanted {
		e.unwanted = 0
	}
	if e.unwanted > 2 && e.end != nil {
		e.end()
	}
}

// yield gives up what other workers should have, until ctx ends.
func yield(ctx context.Context, every time.Duration, share *claims.Share, ends []termEnd) {
	for sleep.For(ctx, every) == nil {
		for p := range ends {
			ends[p].look(share.Mine(p))
		}
	}
}
