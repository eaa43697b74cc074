package activity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
)

// Worker runs activities. It is made by [New], filled by [Register] and started by [Worker.Run].
type Worker struct {
	conn *natsconn.Conn
	opts Options
	ns   subject.Namespace
	log  logrus.FieldLogger

	mu       sync.Mutex
	running  bool
	handlers map[string]handler  // not changed while running
	strange  map[string]struct{} // types that are not registered and were logged
}

// Conn is what has a connection to NATS, such as a client of Drover.
type Conn interface{ NATS() *nats.Conn }

// New returns a worker that will speak through conn. Options that are wrong are reported by Run,
// since they may come from a configuration.
func New(conn Conn, opts *Options) *Worker {
	if opts == nil {
		opts = &Options{}
	}
	o := opts.withDefaults()
	return &Worker{
		conn: natsconn.Of(conn), opts: o, ns: subject.Namespace(o.Namespace),
		log: o.Logger.WithField("worker", o.Identity), handlers: make(map[string]handler),
		strange: make(map[string]struct{}),
	}
}

// ActivityWorker implements [Registry].
func (w *Worker) ActivityWorker() *Worker { return w }

// Types are the activity types that are registered, in the order of their names.
func (w *Worker) Types() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.handlers))
}

// Identity is the name of the worker in histories.
func (w *Worker) Identity() string { return w.opts.Identity }

// Run takes work and does it until ctx ends. Then it takes no more and lets what runs go on for
// Options.DrainTimeout; what runs even then has its context cancelled with [ErrDrained], has
// another second to return, and is handed back.
//
// It also ends when it is told to drain on its control subject ([schemas.ControlDrain]), by "drover
// drain" for one; then the limit is that of the order, if it has one.
//
// It returns nil if everything it took had ended, [ErrDrainTimeout] if tasks were handed back,
// [ErrInvalidOptions] or [ErrRunning] if it did not begin. If the NATS server does not let it pull,
// acknowledge, report or heartbeat it stops by itself, with a [natsconn.RefusedError], and with
// [natsconn.ErrClosed] if its connection is closed. It may be called again.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.opts.validate(); err != nil {
		return err
	}
	if w.conn == nil {
		return fmt.Errorf("%w: New has a nil connection, or one that is closed: give it a client",
			ErrInvalidOptions)
	}
	if err := w.enter(); err != nil {
		return err
	}
	defer w.end()
	s, err := newTerm(w)
	if err != nil {
		return fmt.Errorf("activity worker: %w", err)
	}
	defer s.close()
	w.log.Debugf("activity worker begins: %s", w.opts)
	return s.run(ctx)
}

func (w *Worker) enter() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running {
		return ErrRunning
	}
	w.running = true
	return nil
}

func (w *Worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

// firstSight tells whether a type that is not registered is met for the first time.
func (w *Worker) firstSight(typ string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, seen := w.strange[typ]
	if !seen && len(w.strange) < maxStrange {
		w.strange[typ] = struct{}{}
	}
	return !seen
}

// maxStrange bounds what a flood of invented types can make a worker remember.
const maxStrange = 1000
