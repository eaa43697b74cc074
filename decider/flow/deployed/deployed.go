// Package deployed runs the flows that are deployed in a namespace: it brings package store, which
// keeps them, together with package flow, which runs them.
//
//	w := deployed.New(client, &deployed.Options{Namespace: client.Namespace()})
//	err := w.Run(ctx) // any number of these, anywhere
//
// Invariants:
//
//   - A run takes the version that is current when its first decision is made, as the leader of the
//     bucket has it: so a start after a deployment runs what was deployed. It keeps that version to
//     its end.
//   - A version is read once and kept; it never changes. What is current is kept nowhere.
//   - A worker serves every flow of the namespace within a second of its deployment, and asks for
//     nothing but that while there is none.
//   - It reads the bucket of flows and writes nothing.
//
// The server's role flows, "drover worker --flows" and "drover flow run" are its callers; programs
// may be.
package deployed

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/subject"
	"github.com/droverhq/drover/decider"
	"github.com/droverhq/drover/decider/flow"
	"github.com/droverhq/drover/decider/flow/store"
	"github.com/droverhq/drover/internal/logs"
)

// DefaultList is the task list of activities for which nothing names another.
const DefaultList = "main"

// Options of [New]. The zero value, or nil, takes every default.
type Options struct {
	// Namespace is the tenant whose flows are run. Defaults to "default".
	Namespace string
	// Identity names the worker in histories. Defaults to "host:pid".
	Identity string
	// Concurrency is how many decisions are made at once. Defaults to 64.
	Concurrency int
	// DrainTimeout is how long a stopping worker lets decisions end. -1 cancels at once. Defaults
	// to 30 s.
	DrainTimeout time.Duration
	// List is the task list of activities for which neither step, nor the run's activity defaults
	// name one. Defaults to [DefaultList].
	List string
	// Every is how often new flows are looked for. Defaults to 500 ms.
	Every time.Duration
	// Kept is how many versions are kept in memory, as they were read and compiled. Defaults to
	// 100.
	Kept int
	// Trace is told what steps do, as in [flow.Options]. Defaults to nobody.
	Trace func(flow.Trace)
	// Logger receives what goes wrong. Defaults to one that writes warnings and errors to stderr.
	Logger logrus.FieldLogger
}

// New returns a worker on a connection, which stays the caller's. Invalid options are reported by
// Run.
func New(conn decider.Conn, o *Options) *Worker {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.Logger = logs.Or(opts.Logger)
	ns := subject.Namespace(cmp.Or(opts.Namespace, "default"))
	bucket := store.Open(natsconn.Of(conn), ns)
	w := &Worker{
		log: opts.Logger,
		deciders: decider.New(conn, &decider.Options{
			Namespace: string(ns), Identity: opts.Identity, Concurrency: opts.Concurrency,
			DrainTimeout: opts.DrainTimeout, Logger: opts.Logger,
		}),
	}
	d := flow.New(newLibrary(bucket, opts.Kept),
		&flow.Options{List: cmp.Or(opts.List, DefaultList), Kept: opts.Kept, Trace: opts.Trace})
	w.deciders.Follow(func(ctx context.Context, serve func([]string)) error {
		return bucket.Follow(ctx, &store.FollowOptions{Every: opts.Every, Trouble: w.trouble},
			serve)
	}, d)
	return w
}

// Worker runs the flows of a namespace.
type Worker struct {
	deciders *decider.Worker
	log      logrus.FieldLogger
}

// Run decides until ctx is done, then lets what runs end. Errors are those of [decider.Worker.Run],
// and a [natsconn.RefusedError] if the bucket of flows may not be read.
func (w *Worker) Run(ctx context.Context) error { return w.deciders.Run(ctx) }

// Polls says that the worker asks the server now and then, even if nothing happens. A test in
// virtual time stops it before it leaps.
func (w *Worker) Polls() bool { return true }

func (w *Worker) trouble(err error) {
	switch {
	case err == nil:
		w.log.Info("the bucket of flows can be read again")
	case errors.Is(err, natsconn.ErrDisconnected):
		w.log.WithField("err", err).Debug("the bucket of flows cannot be read now")
	default:
		w.log.WithField("err", err).
			Warn("the bucket of flows cannot be read now: flows that are deployed meanwhile wait")
	}
}
