package decider

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/nearby"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider/internal/history"
	"github.com/droverhq/drover/decider/internal/listen"
	"github.com/droverhq/drover/schemas"
	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"
)

// Worker answers the decision tasks of the types that are registered with it. It is made by [New];
// after the last Register it may Run, and again after that Run has returned.
type Worker struct {
	conn     *natsconn.Conn
	opts     Options
	deciders map[string]Decider
	sources  []followed
	running  atomic.Bool
	invalid  error
}

// Conn is what has a connection to NATS, such as a client of Drover.
type Conn interface{ NATS() *nats.Conn }

// New returns a worker on a connection, which stays the caller's. Options may be nil. Invalid ones
// are reported by Run, since they often come from flags.
func New(conn Conn, opts *Options) *Worker {
	if conn == nil {
		panic("decider: New with a nil connection: give it a client")
	}
	var o Options
	if opts != nil {
		o = *opts
	}
	o = o.withDefaults()
	w := &Worker{
		conn: natsconn.Of(conn), opts: o, deciders: make(map[string]Decider), invalid: o.validate(),
	}
	if w.invalid == nil && w.conn == nil {
		w.invalid = fmt.Errorf("connection: %w", natsconn.ErrClosed)
	}
	return w
}

// Register makes d the decider of a workflow type: 1 to 256 bytes of text without control
// characters. Every call is made before Run. It panics if the type is invalid or registered
// already, and on a nil decider.
func (w *Worker) Register(typ string, d Decider) {
	if err := subject.ValidateID("workflow type", typ); err != nil {
		panic("decider: Register: " + err.Error())
	}
	if f, ok := d.(Func); d == nil || ok && f == nil {
		panic(fmt.Sprintf("decider: Register %q: the decider is nil", typ))
	}
	if _, ok := w.deciders[typ]; ok {
		panic(fmt.Sprintf("decider: Register %q: the type is registered already", typ))
	}
	if w.running.Load() {
		panic(fmt.Sprintf("decider: Register %q: the worker runs already: register before Run",
			typ))
	}
	w.deciders[typ] = d
}

// Logger is what the worker writes to.
func (w *Worker) Logger() logrus.FieldLogger { return w.opts.Logger }

// Types returns the registered types in order.
func (w *Worker) Types() []string { return slices.Sorted(maps.Keys(w.deciders)) }

// Decider returns the decider of a registered type, or nil.
func (w *Worker) Decider(typ string) Decider { return w.deciders[typ] }

// Run answers tasks until ctx is done. Then it takes no more, lets the Decides that run or wait
// finish for up to Options.DrainTimeout, cancels the others with [ErrStopped], tells the broker so,
// and returns. It returns nil if every task that it had taken was answered in time, else an error
// that wraps [ErrDrainTimeout]. If the NATS server does not let it listen to one of its subjects it
// stops by itself in the same way, with a [natsconn.RefusedError], and with [natsconn.ErrClosed] if
// its connection is closed, or with [ErrFeatures] if it meets a broker that lacks what a decider
// [Needs]. Other errors mean that it never began: [ErrInvalidOptions], [ErrNoDeciders],
// [ErrRunning], or what the connection says.
//
// After every reconnect the worker announces itself again, so that runs that found nobody are asked
// at once.
func (w *Worker) Run(ctx context.Context) error {
	switch {
	case w.invalid != nil:
		return w.invalid
	case len(w.deciders)+len(w.sources) == 0:
		return ErrNoDeciders
	case !w.running.CompareAndSwap(false, true):
		return ErrRunning
	}
	defer w.running.Store(false)
	ns := subject.Namespace(w.opts.Namespace)
	log := w.opts.Logger.WithField("worker", w.opts.Identity)
	s := &session{
		conn: w.conn, opts: w.opts, log: log,
		nearby:   nearby.On(w.conn),
		cache:    history.NewCache(w.opts.StickyCache, w.opts.StickyBytes),
		pages:    history.FromAPI(w.conn, ns),
		payloads: payloads.NewClient(w.conn, ns, payloadPatience),
		listener: listen.Listener{
			Conn: w.conn, Namespace: ns, Identity: w.opts.Identity, Log: log, Options: w.opts,
			Needs: needs(w.deciders, w.sources),
		},
	}
	if s.cache != nil {
		// A name of its own for every Run: what an earlier one has promised is gone with its cache.
		s.listener.Sticky = rand.Text()
	}
	return s.run(ctx, w.deciders, w.sources)
}

// session is one Run of a worker.
type session struct {
	conn  *natsconn.Conn
	opts  Options
	log   logrus.FieldLogger
	cache *history.Cache
	pages history.Pager
	// payloads moves what is too large for messages.
	payloads *payloads.Client
	nearby   *nearby.Registry
	latency  tardiness
	pool     *pool
	ahead    func(*localTask) []byte // makes a decision ahead of its task, as long as Decides may
	// draining: answers no longer ask for the run's next task.
	draining atomic.Bool
	listener listen.Listener
}

const (
	// minQueue is the least number of tasks that wait for a slot with their time of arrival known.
	minQueue = 1024
	// abandonAfter is how long canceled Decides are given to return before Run returns without
	// them.
	abandonAfter = time.Second
)

func (s *session) run(ctx context.Context, deciders map[string]Decider, sources []followed) error {
	// Decides outlive ctx by the drain.
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(ErrStopped)
	s.ahead = func(e *localTask) []byte { return e.make(work) }
	s.pool = newPool(s.opts.Concurrency, max(minQueue, 16*s.opts.Concurrency),
		func(a *ask) { s.answer(work, a) })
	s.listener.Drain = func(unsubscribe func(context.Context)) error {
		return s.stop(work, cancel, unsubscribe)
	}
	fixed := make(map[string]listen.Handler, len(deciders))
	for typ, d := range deciders {
		fixed[typ] = s.handler(d)
	}
	var guests []listen.Source
	for _, f := range sources {
		guests = append(guests, listen.Source{Run: f.run, Handle: s.handler(f.decider)})
	}
	err := s.listener.Run(ctx, fixed, guests)
	for _, d := range deciders {
		s.stopped(d)
	}
	for _, f := range sources {
		s.stopped(f.decider)
	}
	return err
}

// stopped tells a decider that no task comes any more.
func (s *session) stopped(d Decider) {
	if err := stopped(d); err != nil {
		s.log.WithField("err", clip(err.Error(), maxReason)).
			Error("a decider panicked when it was told that its worker has stopped")
	}
}

// handler takes tasks for a decider.
func (s *session) handler(d Decider) listen.Handler {
	return func(typ string, sticky bool, m natsconn.Msg) {
		a := &ask{msg: m, typ: typ, decider: d, sticky: sticky, arrived: time.Now()}
		if of := m.Header[schemas.AheadHeader]; sticky && len(of) > 0 {
			s.aheadOf(a, of)
			return
		}
		s.pool.submit(a)
	}
}
