// Package envtest gives a part of a partition what it needs in a test of its own: an [env.Owner]
// with a running loop, and the namespace on a server in memory, in virtual time. The part gets a
// host of the test in place of the partition.
//
// It is for test files only. Call embedded.RegisterTicker in TestMain, outside every bubble.
package envtest

import (
	"context"
	"testing"
	"time"

	"github.com/droverhq/drover/broker/embedded/embeddedtest"
	"github.com/droverhq/drover/broker/execution"
	"github.com/droverhq/drover/broker/natsconn"
	"github.com/droverhq/drover/broker/partition/env"
	"github.com/droverhq/drover/broker/partition/keyed"
	"github.com/droverhq/drover/broker/partition/loop"
	"github.com/droverhq/drover/broker/payloads"
	"github.com/droverhq/drover/broker/runs"
	"github.com/droverhq/drover/broker/topology"
	"github.com/droverhq/drover/internal/logx"
	"github.com/droverhq/drover/internal/virtual"
)

// Owner is the owner of the only partition of a namespace.
type Owner struct {
	env.Owner
	t *testing.T
}

// Run runs fn in a bubble with such an owner.
func Run(t *testing.T, fn func(t *testing.T, o *Owner)) {
	t.Helper()
	virtual.Run(t, func(t *testing.T) { fn(t, newOwner(t)) })
}

func newOwner(t *testing.T) *Owner {
	t.Helper()
	conn := embeddedtest.Dial(t)
	n, err := topology.Ensure(t.Context(), conn, topology.Options{Memory: true, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	log := logx.Or(nil)
	e := env.New(env.Options{
		Namespace: string(n.Name), Partitions: 1, Logger: log,
		Execution: execution.Config{}.Defaults(),
	})
	e.Conn, e.Reads, e.Background = conn, conn, t.Context()
	e.Promised = func() int64 { return 0 }
	e.Locks = keyed.NewTable(e.PartitionOf, func(key string, err error) {
		t.Errorf("the key %q holds no lock: %v", key, err)
	})
	e.Store = payloads.NewStore(conn, n.Name, func(ctx context.Context) error {
		return topology.EnsurePayloads(ctx, conn, n.Name, "test")
	})
	e.Measure()
	if err := e.AskTime(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.Histories = &runs.Reader{
		Conn: conn, Namespace: e.NS, Partitions: 1, BodyLimit: e.BodyLimit, Log: log,
	}
	o := &Owner{t: t, Owner: env.Owner{Env: e, Loop: loop.New(), Log: log}}
	e.Work.Go(func() { o.Loop.Run(t.Context(), func() {}) })
	t.Cleanup(e.Work.Wait) // the context of the test has ended by then
	return o
}

// Do runs f on the loop and waits for a second, in which all is done that f has begun. What the
// loop has written may be read until the next call. f must not end the test.
func (o *Owner) Do(f func()) {
	o.t.Helper()
	o.on(f)
	o.Wait(time.Second)
}

// Wait waits for d. Nothing that the loop writes may be read or written meanwhile, so whoever wants
// time to pass calls it in place of [time.Sleep].
func (o *Owner) Wait(d time.Duration) {
	o.t.Helper()
	o.on(func() {}) // so that the loop comes after what the test has read
	time.Sleep(d)
	o.on(func() {})
}

func (o *Owner) on(f func()) {
	done := make(chan struct{})
	o.Loop.Post(func() { defer close(done); f() })
	<-done
}

// Outbox publishes for the owner until the test ends.
func (o *Owner) Outbox() *natsconn.Outbox {
	o.t.Helper()
	b, err := o.Env.Conn.NewOutbox(natsconn.OutboxOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(b.Close)
	return b
}

// Stored returns what a stream has, in its order.
func (o *Owner) Stored(stream string) (all []natsconn.Stored) {
	o.t.Helper()
	err := o.Env.Reads.Scan(
		o.t.Context(),
		stream,
		natsconn.ReadOptions{},
		func(s natsconn.Stored) error {
			all = append(all, s)
			return nil
		},
	)
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}
