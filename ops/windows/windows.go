package windows

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/operations"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

const (
	// queue is the group of the nodes that answer the verb once.
	queue = "windows"
	// again is the pause before a step is tried again, and before the server is asked again for its
	// time.
	again = time.Second
	// lookEvery is how long this node waits at most between two looks at the server's clock while
	// there are windows: the clock of this machine may stand still meanwhile.
	lookEvery = time.Minute
	// atOnce is how many runs are started at a time.
	atOnce = 32
	// repeatable is for how long after the mark a start may still come that was sent before.
	repeatable = 2 * time.Minute
)

// Options of [New]. Conn, Namespace and Node are required.
type Options struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// Node is the name of this node in keys and operations.
	Node string
	// Logger is told of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
	// Before is called before each request that changes something, with what it does; an error ends
	// the step there, as a crash would. For tests. Defaults to none.
	Before func(what string) error
}

// Windows answers for the periods of a namespace.
type Windows struct {
	o          Options
	table      *table
	operations *operations.Log
}

// New checks the options. It asks nobody.
func New(o Options) (*Windows, error) {
	if o.Conn == nil {
		return nil, fmt.Errorf("windows: %w: Conn is nil: dial the NATS server of the namespace",
			ErrInvalidOptions)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return nil, fmt.Errorf("windows: %w: Namespace: %w", ErrInvalidOptions, err)
	}
	if o.Node == "" {
		return nil, fmt.Errorf("windows: %w: Node is empty: name the node", ErrInvalidOptions)
	}
	o.Logger = logx.Or(o.Logger)
	if o.Before == nil {
		o.Before = func(string) error { return nil }
	}
	return &Windows{
		o: o, table: newTable(o.Logger),
		operations: operations.New(o.Conn, o.Namespace, o.Node, o.Logger),
	}, nil
}

// Holds tells whether no run may be purged: a start that has begun one may be repeated, and would
// begin another if that were gone.
func (w *Windows) Holds() bool { return w.table.holds(repeatable) }

// Run answers the verb once, works on the activity drover.once, and fires the windows of schedules,
// until ctx ends. It returns nil then.
func (w *Windows) Run(ctx context.Context) error {
	stop, err := service.Serve(ctx,
		service.Options{Conn: w.o.Conn, Namespace: w.o.Namespace, Queue: queue, Logger: w.o.Logger},
		[]service.Verb{
			{
				Name:  "once",
				About: "whether the caller is the first of a period: OnceRequest → OnceResponse",
				Serve: service.Answer(w.Once, refuseOnce),
			},
		})
	if err != nil {
		return err
	}
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { w.follow(ctx) })
	all.Go(func() { w.work(ctx) })
	w.fire(ctx)
	return nil
}

// follow keeps the table as the bucket is.
func (w *Windows) follow(ctx context.Context) {
	for ctx.Err() == nil {
		w.table.begin()
		r, err := w.o.Conn.KVWatch(ctx, w.o.Namespace.BucketSchedules(), w.table.take)
		if err == nil {
			select {
			case <-r.CaughtUp():
				w.table.end()
			case <-r.Done():
			case <-ctx.Done():
			}
			select {
			case <-r.Done(): // the bucket was made anew
			case <-ctx.Done():
			}
			r.Close()
			<-r.Done()
			err = r.Err()
		}
		if ctx.Err() != nil {
			return
		}
		w.o.Logger.WithField("err", err).Warn("schedules cannot be followed now; trying again")
		sleep.For(ctx, again)
	}
}

// fire does what is due, again and again.
func (w *Windows) fire(ctx context.Context) {
	var began time.Time // by the server's clock
	for ctx.Err() == nil {
		wait := lookEvery
		now, err := w.serverTime(ctx)
		switch {
		case err != nil:
			wait = again
			w.o.Logger.WithField("err", err).Debug("the server's time is not known; asking again")
		default:
			if began.IsZero() {
				began = now
			}
			tasks, wake := w.table.plan(now, began)
			if w.doAll(ctx, tasks) != nil {
				wake = now.Add(again)
			}
			if wake.IsZero() { // there is no window: nothing is due before something changes
				wait = -1
			} else {
				wait = min(wait, max(wake.Sub(now), time.Millisecond))
			}
		}
		w.wait(ctx, wait)
	}
}

// wait returns after a time, at once when something has changed, or when ctx has ended. A negative
// time has no end.
func (w *Windows) wait(ctx context.Context, d time.Duration) {
	var timer <-chan time.Time
	if d >= 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-timer:
	case <-w.table.changed:
	case <-ctx.Done():
	}
}

// doAll does tasks, some at a time. It returns one of the errors.
func (w *Windows) doAll(ctx context.Context, tasks []task) (failed error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for _, t := range tasks {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			if err := w.do(ctx, &t); err != nil {
				if ctx.Err() == nil {
					w.o.Logger.WithField("err", err).
						Warn("a window cannot be fired now; trying again")
				}
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	all.Wait()
	return failed
}

// serverTime is that of the servers (ADR 0056).
func (w *Windows) serverTime(ctx context.Context) (time.Time, error) {
	at, err := w.o.Conn.StreamTime(ctx, w.o.Namespace.StreamHistory(0))
	if err != nil {
		return at, fmt.Errorf("windows: the time of the server: %w", err)
	}
	if at.IsZero() {
		return at, schemas.Errorf(schemas.CodeUnsupported,
			"the NATS server does not tell its time").WithHint("use a newer one")
	}
	return at.UTC(), nil
}
