package bulk

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/activity"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/sleep"
	"github.com/droverhq/drover/ops/service"
	"github.com/droverhq/drover/schemas/ops"
)

// ErrInvalidOptions reports options that leave their bounds. The text names the field and the way
// out.
var ErrInvalidOptions = errors.New("invalid options")

const (
	// queue is the group of the nodes that answer the verb.
	queue = "bulk"
	// lookEvery is how often a node looks whether there are jobs.
	lookEvery = 10 * time.Second
	// beginsWithin is how long a record stands whose run has not begun.
	beginsWithin = 10 * time.Minute
	// markerFor is how long it is seen that a record was taken away.
	markerFor = time.Minute
	// patience is how long a payload may be on its way.
	patience = time.Minute
	// drainTimeout is how long what is under way may go on after the end.
	drainTimeout = 5 * time.Second
	// jobsAtOnce is how many jobs a node works on at a time.
	jobsAtOnce = 8
)

// Options of [New]. Conn, Namespace and Node are required.
type Options struct {
	Conn      *natsconn.Conn
	Namespace subject.Namespace
	// Node is the name of this node in histories and operations.
	Node string
	// RequireTypes says that the namespace refuses types that are not registered: then those of
	// jobs are registered with the first one.
	RequireTypes bool
	// Find yields the runs that a query finds and for which a further condition holds. Defaults to
	// asking the index.
	Find func(ctx context.Context, query, filter string) iter.Seq2[ops.FoundRun, error]
	// Note notes that a job was begun. Defaults to nobody.
	Note func(ctx context.Context, o ops.Operation)
	// Before is called before each request that changes something, with what it does, and before an
	// answer is heard; an error ends the step there, as a crash would. For tests. Defaults to none.
	Before func(what string) error
	// Logger is told of what goes wrong. Defaults to none.
	Logger logrus.FieldLogger
}

// Bulk answers the verb bulk, and works on jobs.
type Bulk struct {
	o        Options
	payloads *payloads.Client
	begun    chan struct{} // a job was begun here

	mu   sync.Mutex
	have pageOf // the page that was acted on last
}

// pageOf is a page that was read.
type pageOf struct {
	digest string
	page   []target
}

// New checks the options. It asks nobody.
func New(o Options) (*Bulk, error) {
	if o.Conn == nil {
		return nil, fmt.Errorf("bulk: %w: Conn is nil: dial the NATS server of the namespace",
			ErrInvalidOptions)
	}
	if err := subject.ValidateNamespace(string(o.Namespace)); err != nil {
		return nil, fmt.Errorf("bulk: %w: Namespace: %w", ErrInvalidOptions, err)
	}
	if o.Node == "" {
		return nil, fmt.Errorf("bulk: %w: Node is empty: name the node", ErrInvalidOptions)
	}
	o.Logger = logx.Or(o.Logger)
	if o.Note == nil {
		o.Note = func(context.Context, ops.Operation) {}
	}
	if o.Before == nil {
		o.Before = func(string) error { return nil }
	}
	b := &Bulk{
		o: o, payloads: payloads.NewClient(o.Conn, o.Namespace, patience),
		begun: make(chan struct{}, 1),
	}
	if b.o.Find == nil {
		b.o.Find = b.find
	}
	return b, nil
}

// Run answers the verb and works on jobs until ctx ends. It returns nil then.
func (b *Bulk) Run(ctx context.Context) error {
	stop, err := service.Serve(ctx,
		service.Options{Conn: b.o.Conn, Namespace: b.o.Namespace, Queue: queue, Logger: b.o.Logger},
		[]service.Verb{{
			Name:  "bulk",
			About: "do one thing to all runs that a query finds: BulkRequest → BulkResponse",
			Serve: service.Answer(b.Begin, refuse),
		}})
	if err != nil {
		return err
	}
	defer stop()
	for ctx.Err() == nil {
		left, err := b.tidy(ctx)
		if err != nil && ctx.Err() == nil {
			b.o.Logger.WithField("err", err).
				Debug("whether there are bulk jobs cannot be seen now; trying again")
		}
		if left {
			b.work(ctx)
			continue
		}
		b.wait(ctx)
	}
	return nil
}

// wait waits for the next look, or for a job that is begun here.
func (b *Bulk) wait(ctx context.Context) {
	next := time.NewTimer(lookEvery)
	defer next.Stop()
	select {
	case <-b.begun:
	case <-next.C:
	case <-ctx.Done():
	}
}

// work decides jobs and carries out their activities until there are none, or ctx ends.
func (b *Bulk) work(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var working sync.WaitGroup
	defer working.Wait()
	identity := b.o.Node + " (bulk)"
	working.Go(func() {
		b.again(ctx, "decisions of bulk jobs", func() error {
			w := decider.New(b.o.Conn, &decider.Options{
				Namespace: string(b.o.Namespace), Identity: identity, Concurrency: jobsAtOnce,
				DrainTimeout: drainTimeout, Logger: b.o.Logger,
			})
			w.Register(ops.TypeBulk, decider.Func(Decide))
			return w.Run(ctx)
		})
	})
	working.Go(func() {
		b.again(ctx, "activities of bulk jobs", func() error {
			w := activity.New(b.o.Conn, &activity.Options{
				Namespace: string(b.o.Namespace), Lists: []string{ops.BulkList},
				Identity: identity, Concurrency: jobsAtOnce, DrainTimeout: drainTimeout,
				Logger: b.o.Logger,
			})
			activity.Register(w, ops.ActivityBulkFreeze, b.freeze)
			activity.Register(w, ops.ActivityBulkAct, b.act)
			return w.Run(ctx)
		})
	})
	for left := true; left && ctx.Err() == nil; {
		b.wait(ctx)
		if ctx.Err() != nil {
			return
		}
		var err error
		if left, err = b.tidy(ctx); err != nil {
			left = true
		}
	}
}

// again runs a worker again and again until ctx ends.
func (b *Bulk) again(ctx context.Context, what string, run func() error) {
	for ctx.Err() == nil {
		if err := run(); err != nil && ctx.Err() == nil {
			b.o.Logger.WithField("err", err).Warnf("%s cannot be worked on; trying again", what)
		}
		sleep.For(ctx, pause)
	}
}
